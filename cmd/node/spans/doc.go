// Package spans makes an OpenTelemetry span of each delivery whose trace is recorded, and of calls that
// administer the node or read, and sends them to a collector over OTLP.
//
// The span of a delivery begins when its task is due, and ends when the frame with the task is written to the worker:
// what it shows is what ddq adds. It has a link to the span that enqueued the task, and is its child
// when the task was due soon after that; else it begins a trace of its own. The worker gets its
// context, so that its own span is a child of this one.
//
// Nothing here makes a delivery wait. Spans beyond a rate are not begun; those that are done wait in
// a queue for one goroutine, which sends them; what does not fit into the queue, or the collector does
// not take, is dropped. Whatever is lost is counted.
package spans
