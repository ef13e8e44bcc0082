// Package result has what a workload came to: a Line is the result of one, Results writes lines as
// JSON or in tables, systems side by side, and draws how late tasks were.
package result
