package shard

import (
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// aheadOf is how long before their due times the tasks of a batch may be held. Those under
// limits are not: these count what begins.
func (h *holder) aheadOf(batch []holdRequest) time.Duration {
	if h.ref.Settings.HoldAhead == 0 {
		return 0
	}
	now := h.Now()
	last := now
	for i := range batch {
		if batch[i].admission != nil {
			return 0
		}
		last = max(last, batch[i].task.Due)
	}
	return min(last.Sub(now), store.MaxHoldAhead)
}

// onSend sends the tasks of a millisecond that were held ahead of it. The frame leaves when
// the store's clock has reached their due time for certain.
func (h *holder) onSend(due store.Millis) {
	if h.TooEarly(int64(due)) {
		for _, at := range h.unsent.alarms.Take(due) {
			h.unsent.alarms.Set(at)
		}
		return
	}
	for _, t := range h.unsent.take(due) {
		if h.holds.get(t.Task.ID, t.Token) == nil { // its end was told here
			t.sub.Budget.Discard([]subscription.HeldTask{t.HeldTask})
			continue
		}
		h.gather(t.sub, t.HeldTask)
	}
}

// giveBackOf gives back what waits for its due time for a subscription that is over.
func (h *holder) giveBackOf(sub *subscription.Subscriber) {
	h.giveBack(func(t *unsentTask) bool { return t.sub == sub })
}

// giveBackHold gives a hold back if its task was not sent yet, and reports whether that was
// so.
func (h *holder) giveBackHold(e fleet.EndedHold) bool {
	return h.giveBack(func(t *unsentTask) bool { return t.Task.ID == e.ID && t.Token == e.Token }) > 0
}

// giveBack gives back holds whose tasks were not sent yet, and returns how many. Nobody saw
// them, so no attempt is spent; they are due when they were.
func (h *holder) giveBack(which func(*unsentTask) bool) int {
	back := h.unsent.takeIf(which)
	released := make([]subscription.HeldTask, len(back))
	for i, t := range back {
		released[i] = t.HeldTask
		t.sub.Budget.Discard(released[i : i+1])
		if held := h.holds.get(t.Task.ID, t.Token); held != nil {
			held.Sub = nil // its room is given back here
		}
		if !t.sub.Gone.Load() {
			t.sub.Budget.Take(1) // a refund is of what was assigned
		}
		h.report.refund(t.sub, 1)
	}
	h.settler.releaseUnseen(released)
	return len(back)
}
