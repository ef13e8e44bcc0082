package shard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// holdRequest is one ready task that a subscription has room for.
type holdRequest struct {
	sub       *subscription.Subscriber
	task      store.Entry
	admission *dispatch.Admission // nil: under no limit

	counted bool // its end is told, see dispatch.Hold
}

// holdsDone is what a Hold came to, in a CallDone.
type holdsDone struct {
	batch   []holdRequest
	tokens  []store.Hold
	results []store.HoldResult
	began   store.Millis
	took    time.Duration
	err     error
}

// holder takes the holds of tasks that the topic assigned, and has them delivered.
type holder struct {
	*shardState
	claim   *claimer
	settler *settler
	loader  *loader
	permits *permitCalls
	holds   *holdRegistry
	store   store.Owner
	batches engine.Batcher[holdRequest]
	unsent  unsentTasks
	asking  int               // calls of askClock in flight
	early   []fleet.EndedHold // cancelled, and perhaps of calls that are not answered yet

	// Gathered while a message is handled, see deliver.
	outgoing map[*subscription.Subscriber]*outgoing
	last     struct { // of outgoing: what the last task was gathered in
		sub *subscription.Subscriber
		out *outgoing
	}
}

// outgoing is what one message comes to for a subscription.
type outgoing struct {
	tasks []subscription.HeldTask // for its worker
	held  int                     // tasks that are held now, of those that were assigned
	bytes int64                   // of their bodies, as far as they are not counted yet
}

func newHolder(claim *claimer, settler *settler, loader *loader, permits *permitCalls, holds *holdRegistry) holder {
	b := claim.shardState
	size := func(*holdRequest) int { return int(b.ref.Bodies.Get()) } // what a task counts that is not held yet
	return holder{
		shardState: b, claim: claim, settler: settler, loader: loader, permits: permits, holds: holds, store: b.Store,
		batches:  engine.Batcher[holdRequest]{Most: 4, Limit: b.knobs().HoldBatch, Size: size},
		outgoing: make(map[*subscription.Subscriber]*outgoing),
		unsent:   unsentTasks{shardState: b},
	}
}

// receive handles a message of the holder.
func (h *holder) receive(message any, own bool) {
	switch m := message.(type) {
	case *HoldTasks:
		h.hold(m)
	case *HeldElsewhere:
		h.takeOver(m, own)
	case *CancelHolds:
		h.passCancels(m.Holds)
	case *Forget:
		h.giveBackOf(m.Sub)
		m.confirm()
	case *sendDue:
		h.onSend(store.Millis(m.ms))
	case *holdsDone:
		h.onHolds(m, own)
	}
}

// hold queues what the topic assigned. The topic may not have heard yet that the
// shard is lost; whoever owns it has the tasks then.
func (h *holder) hold(m *HoldTasks) {
	h.report.assign(m.Sub.ID, len(m.Tasks))
	if !h.claim.owned() {
		h.report.refundCounted(m.Sub, len(m.Tasks), m.Counted)
		for _, a := range m.Admissions {
			h.report.endAdmission(a)
		}
		return
	}
	for i, t := range m.Tasks {
		r := holdRequest{sub: m.Sub, task: t, counted: m.Counted}
		if m.Admissions != nil {
			r.admission = m.Admissions[i]
		}
		h.batches.Waiting = append(h.batches.Waiting, r)
	}
	h.scheduleFlush()
}

func (h *holder) flush() {
	h.handBack()
	for h.claim.owned() {
		batch := h.batches.Next()
		if batch == nil {
			return
		}
		fence := h.claim.fence()
		h.calls.Run(func(ctx context.Context) { h.done(h.storeHolds(ctx, fence, batch)) })
	}
}

func (h *holder) idle() bool { return h.batches.Idle() && h.unsent.len()+h.asking == 0 }

// waiting reports whether there are tasks to hold.
func (h *holder) waiting() bool { return len(h.batches.Waiting) > 0 }

func (h *holder) fenced() int { return h.batches.InFlight }

func (h *holder) lose() {
	for _, r := range h.batches.Waiting {
		h.report.refundCounted(r.sub, 1, r.counted)
		h.report.endAdmission(r.admission)
	}
	h.batches.Waiting = nil
	h.giveBack(func(*unsentTask) bool { return true })
}

func (h *holder) stop() {} // what waits is refunded, or goes with the topic

// handBack makes tasks ready again whose subscription has no room for their bodies, as
// those before them were larger than expected: others may have room. The topic assigns
// them to it no more before there is some.
func (h *holder) handBack() {
	full := func(r holdRequest) bool { return r.sub.Budget.Full() }
	if !slices.ContainsFunc(h.batches.Waiting, full) {
		return
	}
	var rest []holdRequest
	for _, r := range h.batches.Waiting {
		if !full(r) {
			rest = append(rest, r)
			continue
		}
		h.tasks.Left(r.task.ID)
		h.report.endAdmission(r.admission)
		h.report.refundCounted(r.sub, 1, r.counted)
		h.tasks.Found(h.Now(), r.task)
	}
	h.batches.Waiting = rest
}

func (h *holder) storeHolds(ctx context.Context, fence store.Fence, batch []holdRequest) *holdsDone {
	m := &holdsDone{batch: batch, tokens: make([]store.Hold, len(batch)), began: h.Now()}
	tokens, capped, ahead := store.NewTokens(len(batch)), false, h.aheadOf(batch)
	for i, r := range batch {
		m.tokens[i] = r.sub.Hold(r.task.ID, tokens[i])
		hold := &m.tokens[i]
		hold.Ahead = ahead
		r.admission.Apply(hold)
		hold.Before, hold.Until = h.ByPrimary(hold.Before), h.ByPrimary(hold.Until)
		capped = capped || r.admission != nil && r.admission.Permit != nil
	}
	sent := time.Now()
	_, m.err = h.Resolve(ctx, func() (err error) {
		_, m.results, err = h.store.Hold(ctx, h.id, fence, m.tokens)
		return err
	})
	m.took = time.Since(sent)
	if capped && m.err == nil {
		h.permits.lengthen(ctx, m)
	}
	return m
}

// onHolds learns what became of a batch. own: this incarnation made the call; else what it
// was granted goes back, as its room was refunded.
func (h *holder) onHolds(m *holdsDone, own bool) {
	defer h.passEarly()
	if !own {
		h.settler.releaseUnseen(h.grantedLate(m))
		return
	}
	if m.err == nil {
		h.tasks.HeldMany(len(m.batch), h.batches.InFlight, m.took)
	}
	h.batches.Done()
	h.onOwnHolds(m)
}

// onOwnHolds delivers what was held. What was not goes where it belongs: back into
// the wheel when it is due later, out of sight when it is gone.
func (h *holder) onOwnHolds(m *holdsDone) {
	if m.err != nil {
		h.onHoldsFailed(m)
		return
	}
	now := h.Now()
	h.learnSizes(m.results)
	for i, r := range m.batch {
		news := h.tasks.Left(r.task.ID)
		result := m.results[i]
		if r.counted {
			h.report.outcome.count(r.admission, result.Status, h.took(&r, now))
		}
		if r.admission != nil && h.admitted(r, m.tokens[i].Token, result.Status) {
			continue
		}
		switch result.Status {
		case store.OK:
			t := subscription.HeldTask{Task: result.Task, Token: m.tokens[i].Token, Deadline: result.Deadline}
			if h.register(r.sub, t); m.tokens[i].Ahead > 0 && result.Due > now {
				h.unsent.add(unsentTask{sub: r.sub, HeldTask: t})
			} else {
				h.gather(r.sub, t)
			}
		case store.NotDue, store.LeftOut:
			h.unheld(now, &r, &result, news)
		case store.Behind:
			h.Metrics.CountUnheld(result.Status)
			h.unheld(now, &r, &result, news)
		default:
			h.Metrics.CountUnheld(result.Status)
			h.unheld(now, &r, &result, news)
			h.TellSettled(h.id, r.task.ID)
		}
	}
	h.scheduleFlush()
}

// took is for how long a task has had all its tokens, 0 of one that needs none.
func (h *holder) took(r *holdRequest, now store.Millis) time.Duration {
	if r.admission == nil || r.admission.Since == 0 {
		return 0
	}
	return now.Sub(h.ByPrimary(r.admission.Since))
}

func (h *holder) unheld(now store.Millis, r *holdRequest, result *store.HoldResult, news *store.Entry) {
	h.report.refundCounted(r.sub, 1, r.counted)
	h.tasks.Unheld(now, r.task, result, news)
}

// onHoldsFailed gives the credit back. The tasks are read again from the store
// in a while; those that were held after all come back when their hold runs out.
func (h *holder) onHoldsFailed(m *holdsDone) {
	oldest := m.batch[0].task.Due
	for _, r := range m.batch {
		oldest = min(oldest, r.task.Due)
		if news := h.tasks.Left(r.task.ID); news != nil {
			oldest = min(oldest, news.Due) // it was moved meanwhile
		}
		h.report.refundCounted(r.sub, 1, r.counted)
	}
	h.endAdmissions(m)
	h.holds.expect(m.tokens, m.began, m.err)
	h.claim.noteError(m.err)
	h.loader.reloadLater(oldest)
	h.scheduleFlush()
}

// endAdmissions frees the permits of a call that failed, if it certainly held nothing.
func (h *holder) endAdmissions(m *holdsDone) {
	if errors.Is(m.err, store.ErrUnknown) {
		return // it may be held
	}
	if errors.Is(m.err, store.ErrFenced) || errors.Is(m.err, store.ErrUnavailable) {
		for _, r := range m.batch {
			h.report.endAdmission(r.admission)
		}
	}
}

// learnSizes learns how large the bodies of a batch are.
func (h *holder) learnSizes(results []store.HoldResult) {
	n, bytes := int64(0), int64(0)
	for i := range results {
		if t := results[i].Task; t != nil {
			n, bytes = n+1, bytes+subscription.BodyBytes(t)
		}
	}
	h.ref.Bodies.Learn(n, bytes)
}

// admitted records what became of a task under limits, and reports whether that is
// all there is to do: one that came too late is ready again, without its admission.
func (h *holder) admitted(r holdRequest, token store.Token, status store.Status) (done bool) {
	switch {
	case status == store.OK && r.admission.Doomed:
		h.report.refundCounted(r.sub, 1, r.counted)
		h.deadLetter(r.task.ID, token)
		return true
	case status == store.OK:
		if p := r.admission.Permit; p != nil {
			h.holds.permitted(r.task.ID, p)
		}
		return false
	}
	h.report.endAdmission(r.admission)
	if status == store.Late {
		h.report.refundCounted(r.sub, 1, r.counted)
		h.tasks.Found(h.Now(), r.task)
	}
	return status == store.Late
}

// deadLetter dead-letters a task that was held for that.
func (h *holder) deadLetter(id string, token store.Token) {
	call := NewSettleCall([]subscription.Settlement{{
		Kind: subscription.SettleNack, ID: id, Token: subscription.EncodeToken(h.id.N, token), Reason: store.ReasonRateLimited,
	}}, func([]subscription.Settled) {})
	call.Tokens[0] = token
	h.settler.settle(&SettleHolds{Call: call, Items: []int{0}})
}

// grantedLate returns the tasks that a call held for an incarnation that is gone. Their
// permits end with the holds, and those of the others now.
func (h *holder) grantedLate(m *holdsDone) (granted []subscription.HeldTask) {
	if m.err != nil {
		h.endAdmissions(m)
		h.holds.expect(m.tokens, m.began, m.err)
		return nil
	}
	for i, r := range m.batch {
		result := &m.results[i]
		if result.Status != store.OK {
			h.report.endAdmission(r.admission)
			continue
		}
		if r.admission != nil && r.admission.Permit != nil {
			h.holds.permitted(r.task.ID, r.admission.Permit)
		}
		granted = append(granted, subscription.HeldTask{Task: result.Task, Token: m.tokens[i].Token, Deadline: result.Deadline})
	}
	return granted
}

// granted registers a hold, which goes to the subscription's worker together with the
// others of this message.
func (h *holder) granted(sub *subscription.Subscriber, t subscription.HeldTask) {
	h.register(sub, t)
	h.gather(sub, t)
}

// register registers a hold.
func (h *holder) register(sub *subscription.Subscriber, t subscription.HeldTask) {
	registered := h.holds.next()
	*registered = agenda.Hold{
		ID:       t.Task.ID,
		Sub:      sub,
		Token:    t.Token,
		Deadline: t.Deadline,
		Retries:  agenda.RetriesOf(t.Task, h.topic),
		Lasts:    cmp.Or(t.Task.Visibility, sub.Options.Visibility),
	}
	h.holds.register(registered)
	out := h.outgoingTo(sub)
	out.held++
	out.bytes += subscription.BodyBytes(t.Task)
}

// gather adds to what goes to a subscription's worker when this message is over.
func (h *holder) gather(sub *subscription.Subscriber, t subscription.HeldTask) {
	out := h.outgoingTo(sub)
	out.tasks = append(out.tasks, t)
}

// outgoingTo is what was gathered for a subscription. Most often that is the same as
// before.
func (h *holder) outgoingTo(sub *subscription.Subscriber) *outgoing {
	if h.last.sub != sub {
		out := h.outgoing[sub]
		if out == nil {
			out = new(outgoing)
			h.outgoing[sub] = out
		}
		h.last.sub, h.last.out = sub, out
	}
	return h.last.out
}

// count has the budget of a subscription count the holds that were gathered. It is shared by
// all shards, so it is asked once for all of them.
func (o *outgoing) count(b *subscription.Budget) {
	if o.held > 0 {
		b.Landed(o.held)
		b.Charge(o.bytes)
	}
}

// deliver sends each subscription's worker what was gathered for it.
func (h *holder) deliver() {
	h.last.sub, h.last.out = nil, nil
	for sub, out := range ordered.All(h.outgoing, subscription.Compare) {
		delete(h.outgoing, sub)
		out.count(sub.Budget)
		switch {
		case len(out.tasks) == 0:
		case sub.Gone.Load():
			sub.Budget.Discard(out.tasks)
			h.settler.releaseUnseen(out.tasks) // its worker may have stopped
		default:
			h.Send(sub.Worker, &Deliver{Shard: h.id.N, Tasks: out.tasks})
		}
	}
}

// discard forgets, before a restart, what was gathered: it is held, and no worker gets it.
func (h *holder) discard() {
	for sub, out := range ordered.All(h.outgoing, subscription.Compare) {
		out.count(sub.Budget)
		sub.Budget.Discard(out.tasks)
	}
}

// clockFresh is how long what was heard of a shard's clock is good enough to say how long a hold lasts
// that another node took: clocks part by 5 ms in that, at most.
const clockFresh = 10 * time.Second

// askClock has the store tell of the shard's clock before holds of another node are taken over: how long
// they were on the way is known by that clock only.
func (h *holder) askClock(m *HeldElsewhere) {
	m.asked = true
	h.asking++
	h.calls.Run(func(ctx context.Context) {
		_, m.err = h.CountsOf(ctx, []store.Shard{h.id})
		h.done(m)
	})
}

// takeOver registers holds that another node took for a subscription of this one,
// and passes them on to its worker. Those of which half has passed already go back,
// as from a stream that is too slow, and so do those of which nobody knows that.
func (h *holder) takeOver(m *HeldElsewhere, own bool) {
	switch {
	case !own: // the incarnation that asked broke off
		m.asked, m.err = false, nil
	case m.asked:
		h.asking--
	}
	if !m.asked && h.Age() > clockFresh {
		h.askClock(m)
		return
	}
	defer h.passEarly()
	now := h.Now()
	h.report.assign(m.Sub.ID, len(m.Tasks))
	m.heard = true
	var late []subscription.HeldTask
	for _, d := range m.Tasks {
		_, token, _ := subscription.DecodeToken(d.Token)
		t := subscription.HeldTask{Task: d.Task, Token: token, Deadline: now.Add(d.HoldFor)}
		if d.Deadline != 0 && d.Deadline < t.Deadline {
			t.Deadline = d.Deadline
		}
		if m.err != nil || t.Deadline.Sub(now) < d.HoldFor/2 {
			late = append(late, t)
			continue
		}
		h.holds.register(&agenda.Hold{ID: d.Task.ID, Sub: m.Sub, Token: token, Deadline: t.Deadline, Lasts: d.HoldFor, Foreign: true})
		if keys := capsOver(h.id.Topic, &h.topic.Limits, d.Task.Traits); len(keys) > 0 {
			h.holds.permitted(d.Task.ID, permitOf(token, keys))
		}
		h.outgoingTo(m.Sub).held++
		h.gather(m.Sub, t)
	}
	if len(late) > 0 {
		h.report.refund(m.Sub, len(late))
		m.Sub.Budget.Discard(late)
		h.settler.releaseUnseen(late)
	}
}

// passCancels passes on that the cancellation of tasks was asked for, to who holds them.
// Who holds them on a stream that is gone learns it from the answer to an extend.
func (h *holder) passCancels(holds []fleet.EndedHold) {
	for _, e := range holds {
		held := h.holds.get(e.ID, e.Token)
		if held == nil && h.claim.fenced()+h.asking > 0 {
			h.early = append(h.early, e)
		}
		if held == nil || h.giveBackHold(e) {
			continue
		}
		if sub, ok := held.Sub.(*subscription.Subscriber); ok && !sub.Gone.Load() {
			h.Send(sub.Worker, &CancelAsked{subscription.CancelAsk{ID: e.ID, Token: subscription.EncodeToken(h.id.N, e.Token)}})
		}
	}
}

// passEarly looks again at cancellations that came before their holds were known, once the
// tasks of a call are with their workers.
func (h *holder) passEarly() {
	if len(h.early) > 0 {
		h.post(&CancelHolds{Holds: h.early})
		h.early = nil
	}
}
