// Package server is the gRPC edge of a node: it translates the wire into calls
// of service.Service and its answers into the wire. It has no rules of its own.
//
// What is checked here is what only the wire knows: whether a Duration or a
// Timestamp is well formed, whether an enum value exists, which fields exclude
// each other, and the order of frames on a stream. Names, limits and policy are
// the use cases' business. api/PROTOCOL.md describes the wire.
//
//	Enqueue, Batch ─▶ newTasks ─▶ Tasks.Enqueue ─▶ results
//	EnqueueStream  ─▶ the same, many frames at a time, answered as they finish
//	Subscribe      ─▶ package delivery
//
// Errors travel as *problem.Error until the outermost interceptor turns them
// into a status; package status is the only place that knows codes. Package guard asks
// who calls before a handler runs.
//
// # Files
//
// In layers, and none needs one that is above it:
//
//	server                                        what is served, wired
//	queue, enqueue, edit, find, wait, watch,      the services: they know the use cases, and
//	admin, fleet, peer                            not each other
//	delivery/ │ intercept, decode, lifetime       what they stand on
//	channel                                       the same services for callers within the process
//	task, topic, newtask, page                    the wire, converted
//
// # Goroutines
//
// Server owns one goroutine that follows Node.Ready for the health service,
// and two for each open stream: one receives, the other sends (Subscribe) or
// each frame in work has one (EnqueueStream). Stop returns when all are gone.
package server
