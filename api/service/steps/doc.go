// Package steps tells the tasks of workflows' steps from others, for use cases that leave them to
// their workflow.
package steps
