package actors

import (
	"time"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

type (
	// gateTick, from the topic itself.
	gateTick struct{ at time.Time }
	// tokensReserved, permitsAcquired and permitsFreed, from its store calls, each in a CallDone.
	tokensReserved struct {
		asked []dispatch.Reservation
		got   []store.Tokens
		err   error
	}
	permitsAcquired struct{ all []dispatch.Acquired }
	permitsFreed    struct{}
	// permitsFree, from its store calls and from the node: permits of keys that this
	// node waits for may be free: those that the store has it in turn for, and others.
	permitsFree struct{ inTurn, keys []string }
)

// topicLimits is the part of a topic's actor that asks the store for the tokens and permits
// of its limits, and frees permits. It owns the goroutines of its calls.
type topicLimits struct {
	*topicState
	calls *engine.Calls

	reserves engine.Batcher[dispatch.Reservation]
	acquires engine.Batcher[*dispatch.Ticket]
	frees    engine.Batcher[*dispatch.Permit]
}

func newTopicLimits(state *topicState) *topicLimits {
	return &topicLimits{
		topicState: state,
		calls:      engine.NewCalls(state.Pool),
		reserves:   engine.Batcher[dispatch.Reservation]{Most: 1, Limit: limitBatch},
		acquires:   engine.Batcher[*dispatch.Ticket]{Most: 2, Limit: limitBatch},
		frees:      engine.Batcher[*dispatch.Permit]{Most: 1, Limit: limitBatch},
	}
}

// receive handles a message about limits.
func (t *topicLimits) receive(m any) {
	now := t.Clock.Now()
	switch m := m.(type) {
	case *runtime.CallDone:
		t.onCall(now, m)
	case *gateTick:
		if t.core.Limited() {
			t.core.Tick(now, m.at)
		}
	case *shard.PermitsEnded:
		if t.core.Limited() {
			t.free(m.Permits)
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
				t.free([]*dispatch.Permit{p})
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
			t.noteLimits(m.err)
		}
		t.reserves.Done()
		t.core.Tokens(now, m.asked, m.got, m.err != nil)
	case *permitsAcquired:
		t.acquires.Done()
		t.core.Permits(now, m.all)
	case *permitsFreed:
		t.frees.Done()
	}
}

// clockSet tells the core that a clock of the store was set.
func (t *topicLimits) clockSet() {
	if t.core.Limited() {
		t.core.ClockSet(t.Clock.Now())
	}
}

// queue takes over what the core decided about limits.
func (t *topicLimits) queue(fx *dispatch.Effects) {
	t.free(fx.Free)
	t.reserves.Waiting = append(t.reserves.Waiting, fx.Reserve...)
	t.acquires.Waiting = append(t.acquires.Waiting, fx.Acquire...)
	t.resign(fx.Resign)
}
