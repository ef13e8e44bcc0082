package shard

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/knobs"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard/timers"
	"github.com/ddq-io/ddq/store"
)

const (
	StoreRetry = time.Second // pause before asking a failing store again
	watchSlack = time.Second // how late a timer may be before the watchdog counts it
)

// shardState is what the parts of a shard share.
type shardState struct {
	*runtime.Runtime
	timers.Timers
	id     store.Shard
	ref    *Topic
	topic  *store.Topic // its configuration
	actor  actor.Actor  // this incarnation, see CallDone
	parent *actor.PID
	self   *actor.PID
	calls  *engine.Calls

	tasks  *agenda.Shard // pending
	report *topicReport

	flushScheduled bool // a flushBatches is in the mailbox
}

func newShardState(rt *runtime.Runtime, id store.Shard, ref *Topic, primary *clock.Clock) shardState {
	return shardState{
		Runtime: rt,
		Timers:  timers.New(primary, rt.Clock, rt.Wheel),
		id:      id,
		ref:     ref,
		topic:   ref.Current.Load(),
		calls:   engine.NewCalls(rt.Pool),
	}
}

// latest is a moment that neither the clock of the shard's primary has passed, nor that
// of limits.
func (b *shardState) latest() store.Millis {
	return max(b.Runtime.Latest(), b.Bound())
}

// knobs are the sizes of what it does at a time.
func (b *shardState) knobs() knobs.Knobs { return b.ref.Settings.Knobs.WithDefaults() }

// post sends a message to the shard itself. Safe from any goroutine.
func (b *shardState) post(m any) { b.Send(b.self, m) }

func (b *shardState) tellTopic(m any) { b.Send(b.parent, m) }

// flushBatches comes from the shard: start store calls with what has come together.
type flushBatches struct{}

// scheduleFlush has the batches flushed once what is in the mailbox has joined them.
func (b *shardState) scheduleFlush() {
	if !b.flushScheduled {
		b.flushScheduled = true
		b.post(&flushBatches{})
	}
}

// done tells the shard what a store call came to. Safe from any goroutine.
func (b *shardState) done(result any) { b.post(&runtime.CallDone{By: b.actor, Result: result}) }

// reply is what a store call came to. Its callers are answered after the actor
// was told: whatever they do next reaches the actor later.
type reply interface{ answer() }

// unseen is set when an answer was lost on the way: tasks may have become
// pending since then that no result names.
type unseen struct {
	repeated bool
	began    store.Millis
}

// call runs a store call, tells the actor, and answers the callers.
func (b *shardState) call(do func(ctx context.Context) reply) {
	b.calls.Run(func(ctx context.Context) {
		m := do(ctx)
		b.done(m)
		m.answer()
	})
}

// Sleep waits for d or the end of ctx.
func Sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// topicOf returns another topic as the store has it, nil when there is none.
func (b *shardState) topicOf(ctx context.Context, name string) (*store.Topic, error) {
	t, e := b.Topics.Stored(ctx, name)
	switch {
	case e == nil:
		return t, nil
	case e.Kind == problem.NotFound:
		return nil, nil
	}
	return nil, e
}

// batchingPart is a part of a shard that batches its store calls.
type batchingPart interface {
	flush()      // starts the calls that may start
	idle() bool  // no call runs or waits that somebody depends on
	fenced() int // calls in flight under the fence of the claim
	lose()       // the claim is over: gives back what waits for a call under it
	stop()       // the shard stops: answers what waits for a call
}
