package actors

import (
	"time"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
)

// limiterTick, from the topic itself: a moment that the core asked for has come.
type limiterTick struct{ at time.Time }

// topicLimits is the part of a topic's actor that knows its limits: it tells the core which
// tokens and permits there are, and has the store asked for more.
type topicLimits struct {
	*topicState
	calls *limitCalls
}

func newTopicLimits(state *topicState) *topicLimits {
	return &topicLimits{topicState: state, calls: newLimitCalls(state)}
}

// receive handles a message about limits.
func (t *topicLimits) receive(m any) {
	now := t.Clock.Now()
	switch m := m.(type) {
	case *runtime.CallDone:
		t.onCall(now, m)
	case *limiterTick:
		if t.core.Limited() {
			t.core.Tick(now, m.at)
		}
	case *shard.PermitsEnded:
		if t.core.Limited() {
			t.calls.free(m.Permits)
		}
	case *permitsFree:
		if t.core.Limited() {
			t.core.Freed(now, m.inTurn, m.keys)
		}
	}
}

// onCall handles the end of a store call. Tokens that an earlier incarnation reserved
// are lost; permits that it acquired are freed.
func (t *topicLimits) onCall(now time.Time, d *runtime.CallDone) {
	if d.By == t.by {
		t.onResult(now, d.Result)
		return
	}
	if m, ok := d.Result.(*permitsAcquired); ok {
		for i := range m.all {
			if p := m.all[i].Permit; p != nil {
				t.calls.free([]*dispatch.Permit{p})
			}
		}
	}
}

// onResult handles the end of a call of this incarnation. A topic that has no limits any
// more has forgotten what it asked for.
func (t *topicLimits) onResult(now time.Time, result any) {
	if !t.core.Limited() {
		return
	}
	switch m := result.(type) {
	case *tokensReserved:
		if m.err != nil {
			t.calls.noteError(m.err)
		}
		t.calls.reserves.Done()
		t.core.Tokens(now, m.asked, m.got, m.err != nil)
	case *permitsAcquired:
		t.calls.acquires.Done()
		t.core.Permits(now, m.all)
	case *permitsFreed:
		t.calls.frees.Done()
	}
}

// clockSet tells the core that a clock of the store was set.
func (t *topicLimits) clockSet() {
	if t.core.Limited() {
		t.core.ClockSet(t.Clock.Now())
	}
}

// queue queues the store calls that the core decided on.
func (t *topicLimits) queue(fx *dispatch.Effects) {
	t.calls.free(fx.Free)
	t.calls.reserves.Waiting = append(t.calls.reserves.Waiting, fx.Reserve...)
	t.calls.acquires.Waiting = append(t.calls.acquires.Waiting, fx.Acquire...)
	t.calls.resign(fx.Resign)
}
