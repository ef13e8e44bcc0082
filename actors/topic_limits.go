package actors

import (
	"time"

	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
)

type (
	// limiterTick, from the topic itself: a moment that the core asked for has come.
	limiterTick struct{ at time.Time }
	// limitsFreed, from the node: something may be there of caps and rates in whose lines this node has a place.
	limitsFreed struct{ keys, rateKeys []string }
)

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
	case *shard.AdmissionsEnded:
		if t.core.Limited() {
			t.core.Ended(now, m.Permits, m.Unused)
		}
	case *limitsFreed:
		if t.core.Limited() {
			t.core.Freed(now, m.keys, m.rateKeys)
		}
	case *passNotices:
		t.calls.pass(m.notices)
	}
}

// onCall handles the end of a store call. What an earlier incarnation took goes back, as far as it can.
func (t *topicLimits) onCall(now time.Time, d *runtime.CallDone) {
	m, taken := d.Result.(*limitsTaken)
	switch {
	case !taken || !t.core.Limited():
		return
	case d.By != t.by:
		t.core.Abandoned(now, m.call, &m.Taken)
	default:
		t.core.Taken(now, &m.Taken)
	}
	if m.Reply != nil {
		t.calls.pass(m.Reply.Notices)
	}
}

// clockSet tells the core that a clock of the store was set.
func (t *topicLimits) clockSet() {
	if t.core.Limited() {
		t.core.ClockSet(t.Clock.Now())
	}
}
