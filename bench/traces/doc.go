// Package traces is what a bench knows of tracing: contexts for the tasks that it enqueues, and a
// collector that takes the spans of the server that it started.
package traces
