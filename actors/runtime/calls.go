package runtime

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/problem"
)

// Failer is a message that callers wait on. It is told when it was lost.
type Failer interface{ Fail(err *problem.Error) }

// FailLate answers the callers that wait on a message that no actor handles any more.
func FailLate(message any) {
	if m, ok := message.(Failer); ok {
		m.Fail(problem.ErrClosed())
	}
}

// FailLost answers the callers that wait on a message whose handling panicked.
func FailLost(message any, err error) {
	if m, ok := message.(Failer); ok {
		m.Fail(problem.Bug(err))
	}
}

// An actor that panics is restarted: a new incarnation of it begins from the store. The
// mailbox survives, so the new incarnation gets the results of the old one's store calls.
// A CallDone names the incarnation that made the call: only that one counts it as its own.

// CallDone is the end of a store call: its result, and the incarnation that made it.
type CallDone struct {
	By     actor.Actor
	Result any
}

// Fail tells the callers of the call.
func (d *CallDone) Fail(err *problem.Error) {
	if m, ok := d.Result.(Failer); ok {
		m.Fail(err)
	}
}
