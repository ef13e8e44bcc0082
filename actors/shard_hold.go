package actors

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// holdBatch is the most tasks of one Hold: a script that runs for long delays
// every other one.
const holdBatch = 512

// holdRequest is one ready task that a subscription has room for.
type holdRequest struct {
	sub       *subscriber
	task      store.Entry
	admission *dispatch.Admission // nil: under no limit

	counted bool // see core.count
}

func (sub *subscriber) HolderID() int64 { return sub.id }

func (sub *subscriber) hold(id string, token store.Token) store.Hold {
	return store.Hold{
		ID:         id,
		Token:      token,
		Visibility: sub.options.Visibility,
		Worker:     sub.options.Worker,
		Node:       sub.node,
	}
}

// hold queues what the topic assigned. The topic may not have heard yet that the
// shard is lost; whoever owns it has the tasks then.
func (s *shard) hold(m *holdTasks) {
	s.assigned[m.sub.id] += len(m.tasks)
	if !s.claim.Owned() {
		s.endAssignments(m.sub, len(m.tasks), m.counted)
		for _, l := range m.admissions {
			s.endAdmission(l)
		}
		return
	}
	for i, t := range m.tasks {
		r := holdRequest{sub: m.sub, task: t, counted: m.counted}
		if m.admissions != nil {
			r.admission = m.admissions[i]
		}
		s.holds.Waiting = append(s.holds.Waiting, r)
	}
	s.scheduleFlush()
}

func (s *shard) flushHolds() {
	s.handBack()
	for s.claim.Owned() {
		batch := s.holds.Next()
		if batch == nil {
			return
		}
		fence := s.claim.Fence()
		s.calls.Run(func(ctx context.Context) { s.done(s.storeHolds(ctx, fence, batch)) })
	}
}

// bodyEstimate is what a task counts that is not held yet.
func (s *shard) bodyEstimate(*holdRequest) int { return int(s.ref.bodies.get()) }

// handBack makes tasks ready again whose subscription has no room for their bodies, as
// those before them were larger than expected: others may have room. The topic assigns
// them to it no more before there is some.
func (s *shard) handBack() {
	full := func(r holdRequest) bool { return r.sub.budget.full() }
	if !slices.ContainsFunc(s.holds.Waiting, full) {
		return
	}
	var rest []holdRequest
	for _, r := range s.holds.Waiting {
		if !full(r) {
			rest = append(rest, r)
			continue
		}
		s.tasks.Left(r.task.ID)
		s.endAdmission(r.admission)
		s.endAssignments(r.sub, 1, r.counted)
		s.tasks.Found(s.now(), r.task)
	}
	s.holds.Waiting = rest
}

func (s *shard) storeHolds(ctx context.Context, fence store.Fence, batch []holdRequest) *holdsDone {
	m := &holdsDone{batch: batch, tokens: make([]store.Hold, len(batch))}
	tokens, capped := store.NewTokens(len(batch)), false
	for i, r := range batch {
		m.tokens[i] = r.sub.hold(r.task.ID, tokens[i])
		r.admission.Apply(&m.tokens[i])
		capped = capped || r.admission != nil && r.admission.Permit != nil
	}
	_, m.err = s.Resolve(ctx, func() (err error) {
		_, m.results, err = s.store.Hold(ctx, s.id, fence, m.tokens)
		return err
	})
	if capped && m.err == nil {
		s.lengthen(ctx, batch, m.tokens, m.results)
	}
	return m
}

// onHolds delivers what was held. What was not goes where it belongs: back into
// the wheel when it is due later, out of sight when it is gone.
func (s *shard) onHolds(m *holdsDone) {
	if m.err != nil {
		s.onHoldsFailed(m)
		return
	}
	now := s.now()
	s.learnSizes(m.results)
	for i, r := range m.batch {
		s.tasks.Left(r.task.ID)
		result := m.results[i]
		if r.counted {
			s.outcome.count(&r, result.Status, now)
		}
		if r.admission != nil && s.admitted(r, m.tokens[i].Token, result.Status) {
			continue
		}
		switch result.Status {
		case store.OK:
			s.deliver(r.sub, heldTask{task: result.Task, token: m.tokens[i].Token, deadline: result.Deadline})
		case store.NotDue, store.LeftOut:
			s.endAssignments(r.sub, 1, r.counted)
			s.tasks.Unheld(now, r.task, &result)
		case store.Behind:
			s.endAssignments(r.sub, 1, r.counted)
			s.metrics.countUnheld(result.Status)
			s.tasks.Unheld(now, r.task, &result)
		default:
			s.endAssignments(r.sub, 1, r.counted)
			s.metrics.countUnheld(result.Status)
			s.tasks.Unheld(now, r.task, &result)
			s.TellSettled(s.id, r.task.ID)
		}
	}
	s.scheduleFlush()
}

// onHoldsFailed gives the credit back. The tasks are read again from the store
// in a while; those that were held after all come back when their hold runs out.
func (s *shard) onHoldsFailed(m *holdsDone) {
	oldest := m.batch[0].task.Due
	for _, r := range m.batch {
		s.tasks.Left(r.task.ID)
		s.endAssignments(r.sub, 1, r.counted)
		oldest = min(oldest, r.task.Due)
	}
	s.endAdmissions(m)
	s.expectHolds(m.tokens, m.err)
	s.noteError(m.err)
	s.reloadLater(oldest)
	s.scheduleFlush()
}

// endAdmissions frees the permits of a call that failed, if it certainly held nothing.
func (s *shard) endAdmissions(m *holdsDone) {
	if errors.Is(m.err, store.ErrUnknown) {
		return // it may be held
	}
	if errors.Is(m.err, store.ErrFenced) || errors.Is(m.err, store.ErrUnavailable) {
		for _, r := range m.batch {
			s.endAdmission(r.admission)
		}
	}
}

// learnSizes learns how large the bodies of a batch are.
func (s *shard) learnSizes(results []store.HoldResult) {
	n, bytes := int64(0), int64(0)
	for i := range results {
		if t := results[i].Task; t != nil {
			n, bytes = n+1, bytes+bodyBytes(t)
		}
	}
	s.ref.bodies.learn(n, bytes)
}

// expectHolds watches for the end of holds that a call asked for, when nobody knows whether
// they were granted: no worker will settle them. The store says at their end whether they
// are there.
func (s *shard) expectHolds(asked []store.Hold, err error) {
	if !s.claim.Owned() || !errors.Is(err, store.ErrUnknown) {
		return
	}
	for _, h := range asked {
		if s.held.ByID[h.ID] == nil {
			s.held.Add(&agenda.Hold{ID: h.ID, Token: h.Token, Deadline: s.latest().Add(h.Visibility)})
		}
	}
}

// deliver registers a hold and passes it to the subscription's worker, together
// with the others of this message.
func (s *shard) deliver(sub *subscriber, h heldTask) {
	registered := s.room()
	*registered = agenda.Hold{
		ID:       h.task.ID,
		Sub:      sub,
		Token:    h.token,
		Deadline: h.deadline,
		Retries:  agenda.RetriesOf(h.task, s.topic),
		Lasts:    cmp.Or(h.task.Visibility, sub.options.Visibility),
	}
	s.register(registered)
	sub.budget.Landed(1)
	sub.budget.charge(bodyBytes(h.task))
	s.putOut(sub, h)
}

// holdChunk is how many holds are allocated together: the last of them to end keeps
// the others in memory.
const holdChunk = 8

// room returns where to put a hold.
func (s *shard) room() *agenda.Hold {
	if len(s.unused) == 0 {
		s.unused = make([]agenda.Hold, holdChunk)
	}
	h := &s.unused[0]
	s.unused = s.unused[1:]
	return h
}

// putOut adds to what goes to a subscription's worker when this message is over.
// Most often that is the same as before.
func (s *shard) putOut(sub *subscriber, h heldTask) {
	if s.last.sub != sub {
		tasks := s.outgoing[sub]
		if tasks == nil {
			tasks = new([]heldTask)
			s.outgoing[sub] = tasks
		}
		s.last.sub, s.last.tasks = sub, tasks
	}
	*s.last.tasks = append(*s.last.tasks, h)
}

// register adds a hold. Another one of the same task is over, though nobody told this
// node: it makes room for its subscription.
func (s *shard) register(h *agenda.Hold) {
	if old := s.held.ByID[h.ID]; old != nil && old.Token != h.Token {
		s.endPermit(old.ID, old.Token)
		if old.Sub != nil {
			s.freed[old.Sub.HolderID()]++
		}
	}
	s.held.Add(h)
}

// unregister forgets the hold of a task under a token, and makes room for its
// subscription.
func (s *shard) unregister(id string, token store.Token) {
	s.endPermit(id, token)
	s.tasks.HoldEnded(id)
	h := s.held.Get(id, token)
	if h == nil {
		return
	}
	s.held.Remove(h)
	if h.Sub != nil {
		s.freed[h.Sub.HolderID()]++
	}
}

// holdAlarms are entries of a timer queue.
type holdAlarms struct{ queue *timer.Queue }

// Set adds a millisecond.
func (a holdAlarms) Set(ms store.Millis) { a.queue.Insert(alarmID(ms), int64(ms)) }

// Clear takes one back.
func (a holdAlarms) Clear(ms store.Millis) { a.queue.Remove(alarmID(ms)) }

// Take returns what was set for a moment.
func (a holdAlarms) Take(ms store.Millis) []store.Millis {
	entries := a.queue.Take(int64(ms))
	taken := make([]store.Millis, len(entries))
	for i, e := range entries {
		taken[i] = store.Millis(e.Due)
	}
	return taken
}

// Close ends the queue.
func (a holdAlarms) Close() { a.queue.Close() }

func alarmID(ms store.Millis) string { return strconv.FormatInt(int64(ms), 10) }
