package faults

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// plannedEnd is how the end of a task is waited for, or brought about.
type plannedEnd struct {
	at       time.Duration
	wait     time.Duration
	cancel   bool
	orDelete bool
}

// stubborn is how long a handler works for a task that is to be cancelled, unless it is.
const stubborn = time.Second

// cancelled reports whether a task is one of those.
func cancelled(seed uint64, id string) bool {
	return topicOf(seed, id) == kept && draw(seed, id, "cancel")%3 == 0
}

// planEnds plans the waits for a task, and its cancels. They are after deliveries of its
// topic go on.
func (t *planned) planEnds(r *rand.Rand, c *partyConfig) {
	due := max(t.due, pausedFor(c.For))
	if cancelled(c.Seed, t.id) {
		t.fate = ordinary
		for range 1 + r.IntN(2) {
			e := plannedEnd{cancel: true, orDelete: r.IntN(8) == 0}
			e.at = due + time.Duration(r.Int64N(int64(700*time.Millisecond)))
			if r.IntN(2) == 0 {
				e.wait = 1500 * time.Millisecond
			}
			t.ends = append(t.ends, e)
		}
	}
	if r.IntN(2) == 0 {
		t.ends = append(t.ends, plannedEnd{at: t.send + 100*time.Millisecond + time.Duration(r.Int64N(int64(due-t.send)+1)), wait: 1500 * time.Millisecond})
	}
}

// end cancels a task, or waits for its end, and writes down what the server says.
func (p *producer) end(ctx context.Context, t *planned, e *plannedEnd) {
	call := ledger.Event{Op: ledger.Wait, Topic: t.topic, Task: t.id}
	if e.cancel {
		call.Op, call.Final = ledger.Cancel, e.orDelete
	}
	p.call(call, func() (ledger.Event, error) {
		if e.cancel {
			out, err := p.client.Cancel(ctx, t.topic, t.id, client.CancelOptions{Wait: e.wait, OrDelete: e.orDelete})
			return ledger.Event{Outcome: out.Outcome.String()}, err
		}
		s, err := p.client.Wait(ctx, t.topic, t.id, e.wait)
		answer := ledger.Event{}
		if err == nil {
			answer.State, answer.Version = s.State.String(), s.Version
		}
		if s.State == client.StateDone {
			answer.Output = tap.Sum(s.Result)
		}
		return answer, err
	})
}
