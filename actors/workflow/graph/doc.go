// Package graph is what the author of a workflow decides: named steps, each a task, a wait or a
// child workflow, and what each of them waits for.
//
// A Definition is what is submitted, and never changes. Growth is what an ack adds to it later:
// steps that wait for each other only, so the graph stays free of cycles. Both are checked before
// they are stored, and again when they are read. They are encoded so that what is equal has
// equal bytes.
//
// What becomes of a graph when its steps end is no matter of this package, see workflow.
package graph
