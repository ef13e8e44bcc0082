package shard

import (
	"cmp"
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// topicReport is what a shard tells its topic of subscriptions and limits. It is gathered
// while a message is handled, and sent at the end.
type topicReport struct {
	shard    int
	tell     func(m any)        // tells the topic
	assigned map[int64]int      // subscription -> tasks given to it here that the topic has not heard the end of
	ended    map[int64]int      // subscription -> holds ended
	refunds  map[int64]int      // subscription -> assignments that came to nothing
	counted  map[int64]int      // of refunds, see dispatch.Hold
	permits  []*dispatch.Permit // of holds that ended
	unused   []*dispatch.Admission
	outcome  HoldOutcome
}

func newTopicReport(shard int, tell func(m any)) *topicReport {
	return &topicReport{
		shard:    shard,
		tell:     tell,
		assigned: make(map[int64]int),
		ended:    make(map[int64]int),
		refunds:  make(map[int64]int),
		counted:  make(map[int64]int),
	}
}

// send tells the topic what became ready, and what was gathered. How holds went comes first, and what they were to be held
// with: a task that came too late is asked for again at once, and what it had goes back with that call. Else its own
// token would be missing, and it may be a dead letter for that.
func (r *topicReport) send(ready []store.Entry) {
	if r.outcome != (HoldOutcome{}) {
		outcome := r.outcome
		r.outcome, outcome.Shard = HoldOutcome{}, r.shard
		r.tell(&outcome)
	}
	if len(r.permits)+len(r.unused) > 0 {
		r.tell(&AdmissionsEnded{r.permits, r.unused})
		r.permits, r.unused = nil, nil
	}
	if len(ready) > 0 {
		r.tell(&BecameReady{Shard: r.shard, Tasks: ready})
	}
	r.sendEnded()
	for sub, n := range ordered.All(r.refunds, cmp.Compare) {
		delete(r.refunds, sub)
		r.unassign(sub, n)
		r.tell(&Refunded{Sub: sub, N: n, Shard: r.shard, Counted: r.counted[sub]})
		delete(r.counted, sub)
	}
}

func (r *topicReport) sendEnded() {
	for sub, n := range ordered.All(r.ended, cmp.Compare) {
		delete(r.ended, sub)
		r.unassign(sub, n)
		r.tell(&SettledHolds{Sub: sub, N: n})
	}
}

// refundAll gives back what was assigned, but for the holds that the next incarnation has.
func (r *topicReport) refundAll(kept []*agenda.Hold) {
	for _, h := range kept {
		r.unassign(h.Sub.HolderID(), 1)
	}
	for sub, n := range ordered.All(r.assigned, cmp.Compare) {
		r.tell(&Refunded{Sub: sub, N: n})
	}
}

// assign records that n tasks are given to a subscription.
func (r *topicReport) assign(sub int64, n int) { r.assigned[sub] += n }

// unassign notes that the topic hears of the end of n tasks.
func (r *topicReport) unassign(sub int64, n int) {
	if r.assigned[sub] -= n; r.assigned[sub] <= 0 {
		delete(r.assigned, sub)
	}
}

// endHold makes room for the subscription of a hold, if it has one.
func (r *topicReport) endHold(h *agenda.Hold) {
	if h.Sub != nil {
		r.ended[h.Sub.HolderID()]++
	}
}

// refund gives back n assignments that came to nothing.
func (r *topicReport) refund(sub *subscription.Subscriber, n int) { r.refunds[sub.ID] += n }

// refundCounted does so with assignments that may be counted, see dispatch.Hold.
func (r *topicReport) refundCounted(sub *subscription.Subscriber, n int, counted bool) {
	r.refund(sub, n)
	if counted {
		r.counted[sub.ID] += n
	}
}

// endPermit frees a permit.
func (r *topicReport) endPermit(p *dispatch.Permit) { r.permits = append(r.permits, p) }

// endAdmission gives back what a task was to be held with that is certainly not held.
func (r *topicReport) endAdmission(a *dispatch.Admission) {
	if a != nil {
		r.unused = append(r.unused, a)
	}
}

func (m *HoldOutcome) count(a *dispatch.Admission, status store.Status, took time.Duration) {
	switch {
	case status == store.Late:
		m.Late++
	case status != store.OK, a != nil && a.Doomed: // a refund tells
	default:
		m.Held++
	}
	m.Took = max(m.Took, took)
}
