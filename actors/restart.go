package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/problem"
)

// An actor that panics is restarted: a new incarnation of it begins from the store. The
// mailbox survives, so the new incarnation gets the results of the old one's store calls.
// A callDone names the incarnation that made the call: only that one counts it as its own.

// callDone is the end of a store call: its result, and the incarnation that made it.
type callDone struct {
	by     actor.Actor
	result any
}

func (d *callDone) Fail(err *problem.Error) {
	if m, ok := d.result.(failer); ok {
		m.Fail(err)
	}
}
