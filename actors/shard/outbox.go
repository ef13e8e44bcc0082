package shard

import (
	"context"
	"math"
	"time"

	"github.com/ddq-io/ddq/actors/courier"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

// outboxWait is how long parcels wait at most for a topic that is paused or full, before they are
// tried again.
const outboxWait = 5 * time.Second

// outboxAgain comes from the outbox itself: parcels that wait are to be tried again.
type outboxAgain struct{}

// outbox has what lies in the out-box of a shard that this node owns handed on.
//
// Invariants:
//   - one round is in flight at most, and none that is not under the claim
//   - what changes while it is begins the next one
type outbox struct {
	*shardState
	claim   *claimer
	courier *courier.Courier // nil: the store keeps no cells

	wanted bool  // a round is to begin
	busy   bool  // and is in flight
	later  bool  // an outboxAgain comes
	after  int64 // where the next round begins
	wait   time.Duration
}

func newOutbox(claim *claimer) outbox {
	b := claim.shardState
	o := outbox{shardState: b, claim: claim}
	if b.Cells != nil {
		o.courier = &courier.Courier{
			ID: b.id, Store: b.Cells, Tasks: b.Store, Counts: b.CountsOf, TopicOf: b.Topics.Of, Stored: b.Topics.Stored, Resolve: b.Resolve, Now: b.Now, Log: b.Log,
		}
	}
	return o
}

// receive handles a message of the outbox.
func (o *outbox) receive(message any, own bool) {
	switch m := message.(type) {
	case *ParcelsSent:
		o.look()
		if o.courier != nil && !o.claim.owned() && !o.Fleet.Alone() {
			o.Fleet.NotifyOwner(o.id, fleet.Notice{Ended: []fleet.EndedNotice{{Shard: o.id}}})
		}
	case *outboxAgain:
		o.later = false
		o.look()
	case *courier.Outcome:
		o.onRound(m, own)
	}
}

// notice looks at what is another part's for what it means for the out-box.
func (o *outbox) notice(message any) {
	switch m := message.(type) {
	case *SeqSeen:
		if m.Parcels > 0 {
			o.look()
		}
	case *EndedElsewhere:
		if len(m.Holds) == 0 { // another node left a parcel, or changed a cell
			o.look()
		}
	}
}

// look has a round begin, now or behind the one that is in flight.
func (o *outbox) look() {
	if o.courier != nil && o.claim.owned() {
		o.wanted = true
		o.scheduleFlush()
	}
}

func (o *outbox) flush() {
	if !o.wanted || o.busy || !o.claim.owned() {
		return
	}
	o.wanted, o.busy = false, true
	from := courier.Start{Fence: o.claim.fence(), Topic: o.topic, After: o.after}
	o.calls.Run(func(ctx context.Context) { o.done(o.courier.Round(ctx, from)) })
}

func (o *outbox) idle() bool { return !o.busy }

func (o *outbox) fenced() int {
	if o.busy {
		return 1
	}
	return 0
}

// lose leaves the out-box to whoever claims the shard next.
func (o *outbox) lose() { o.wanted, o.after, o.wait = false, 0, 0 }

func (o *outbox) stop() {}

// dozesUntil is 0 while there is something to do.
func (o *outbox) dozesUntil() store.Millis {
	if o.wanted || o.busy || o.later {
		return 0
	}
	return math.MaxInt64
}

// onRound learns what a round came to. own: this incarnation made it.
func (o *outbox) onRound(m *courier.Outcome, own bool) {
	for _, made := range m.Made {
		o.Topics.TellPending(made.Shard, made.Seq, made.Tasks...)
	}
	for i := range m.Told {
		o.Topics.TellCommitted(&m.Told[i])
	}
	o.Metrics.Undeliverable.Add(float64(m.Refused))
	if !own {
		return
	}
	o.busy, o.after = false, m.After
	o.claim.noteError(m.Err)
	if !o.claim.owned() {
		return
	}
	switch {
	case m.Err != nil, m.Waits && m.After == 0:
		o.tryLater()
		return
	case m.After != 0:
		o.look()
	}
	if !m.Waits {
		o.wait = 0
	}
	if o.wanted {
		o.scheduleFlush()
	}
}

// tryLater looks again after a while, which is longer each time.
func (o *outbox) tryLater() {
	if o.later {
		return
	}
	o.later = true
	o.wait = min(max(2*o.wait, 100*time.Millisecond), outboxWait)
	wait := o.wait
	o.calls.Run(func(ctx context.Context) {
		Sleep(ctx, wait)
		o.post(&outboxAgain{})
	})
}
