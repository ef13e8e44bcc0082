// Package operations shows changes of many tasks that a node makes meanwhile, and stops them. The pages
// of tasks and of dead letters start them.
package operations
