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
//	Subscribe      ─▶ session: receive ─▶ Subscription.Grant, Settle
//	                           send    ◀─ outbox ◀─ the subscription's actor
//
// Errors travel as *problem.Error until the outermost interceptor turns them
// into a status; errors.go is the only place that knows codes.
//
// # Files
//
// In layers, and none needs one that is above it, but for a session and who has them all:
//
//	server                                        what is served, wired
//	queue, enqueue, edit, find, wait, watch,      the services: they know the use cases, and
//	admin, fleet, peer, sessions and subscribe    not each other
//	outbox │ intercept, decode, caller, lifetime  what they stand on
//	channel                                       the same services for callers within the process
//	task, delivery, topic, newtask, settle, page  the wire, converted; errors.go the codes
//
// # Goroutines
//
// Server owns one goroutine that follows Node.Ready for the health service,
// and two for each open stream: one receives, the other sends (Subscribe) or
// each frame in work has one (EnqueueStream). Stop returns when all are gone.
package server
