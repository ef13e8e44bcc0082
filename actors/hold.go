package actors

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/store"
)

// holdBatch is the most tasks of one Hold: a script that runs for long delays
// every other one.
const holdBatch = 512

// holdRequest is one ready task that a subscription has room for.
type holdRequest struct {
	sub   *subscriber
	task  store.Entry
	leave *leave // nil: under no limit

	counted bool // the topic is to hear when it is held
}

// hold is a held task as the shard remembers it.
type hold struct {
	id       string
	sub      *subscriber // nil: held by an earlier life of the shard
	token    store.Token
	deadline store.Millis
	retries  retries
	lasts    time.Duration // of the hold when it was granted: what an extend renews
	foreign  bool          // taken by another node: retries is not known
	ending   *ending       // nil: no timer. Set by held
}

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
	if !s.owned {
		s.refund(m.sub, len(m.tasks))
		for _, l := range m.leaves {
			s.endLeave(l)
		}
		return
	}
	for i, t := range m.tasks {
		r := holdRequest{sub: m.sub, task: t, counted: m.counted}
		if m.leaves != nil {
			r.leave = m.leaves[i]
		}
		s.holds.waiting = append(s.holds.waiting, r)
	}
	s.flyLater()
}

func (s *shard) flushHolds() {
	for s.owned {
		batch := s.holds.next()
		if batch == nil {
			return
		}
		fence := s.fence
		s.calls.run(func(ctx context.Context) { s.post(s.storeHolds(ctx, fence, batch)) })
	}
}

func (s *shard) storeHolds(ctx context.Context, fence store.Fence, batch []holdRequest) *holdsDone {
	m := &holdsDone{batch: batch, tokens: make([]store.Hold, len(batch))}
	tokens, capped := store.NewTokens(len(batch)), false
	for i, r := range batch {
		m.tokens[i] = r.sub.hold(r.task.ID, tokens[i])
		r.leave.apply(&m.tokens[i])
		capped = capped || r.leave != nil && r.leave.permit != nil
	}
	_, m.err = s.resolve(ctx, func() (err error) {
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
	s.holds.landed()
	if m.err != nil {
		s.onHoldsFailed(m)
		return
	}
	now := s.now()
	for i, r := range m.batch {
		delete(s.out, r.task.ID)
		s.lanes.drop(r.task.ID)
		result := m.results[i]
		if r.counted {
			s.through.count(&r, result.Status, now)
		}
		if r.leave != nil && s.onLeave(r, m.tokens[i].Token, result.Status) {
			continue
		}
		switch result.Status {
		case store.OK:
			s.deliver(r.sub, heldTask{task: result.Task, token: m.tokens[i].Token, deadline: result.Deadline})
		case store.Behind:
			s.refund(r.sub, 1)
			s.metrics.countUnheld(result.Status)
			s.standBehind(r.task, &result)
		case store.NotDue:
			s.refund(r.sub, 1)
			s.orders.early(r.task.ID)
			s.learn(store.Entry{ID: r.task.ID, Due: result.Due, Traits: r.task.Traits})
		default:
			s.refund(r.sub, 1)
			s.metrics.countUnheld(result.Status)
			s.unheld(r.task.ID, result.Status)
			s.tellSettled(s.id, r.task.ID)
		}
	}
	s.flyLater()
}

// onHoldsFailed gives the credit back. The tasks are read again from the store
// in a while; those that were held after all come back when their hold runs out.
func (s *shard) onHoldsFailed(m *holdsDone) {
	oldest := m.batch[0].task.Due
	for _, r := range m.batch {
		delete(s.out, r.task.ID)
		s.lanes.drop(r.task.ID)
		s.refund(r.sub, 1)
		if errors.Is(m.err, store.ErrFenced) || errors.Is(m.err, store.ErrUnavailable) {
			s.endLeave(r.leave) // nothing was held
		}
		oldest = min(oldest, r.task.Due)
	}
	s.noteError(m.err)
	s.later(&reload{from: oldest})
	s.flyLater()
}

// deliver registers a hold and passes it to the subscription's worker, together
// with the others of this message.
func (s *shard) deliver(sub *subscriber, h heldTask) {
	registered := s.room()
	*registered = hold{
		id:       h.task.ID,
		sub:      sub,
		token:    h.token,
		deadline: h.deadline,
		retries:  retriesOf(h.task, s.topic),
		lasts:    or(h.task.Visibility, sub.options.Visibility),
	}
	s.held.add(registered)
	s.putOut(sub, h)
}

// holdChunk is how many holds are allocated together: the last of them to end keeps
// the others in memory.
const holdChunk = 8

// room returns where to put a hold.
func (s *shard) room() *hold {
	if len(s.unused) == 0 {
		s.unused = make([]hold, holdChunk)
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

// unregister forgets the hold of a task under a token, and makes room for its
// subscription.
func (s *shard) unregister(id string, token store.Token) {
	s.endPermit(id, token)
	s.orders.ended(id)
	h := s.held.get(id, token)
	if h == nil {
		return
	}
	s.held.remove(h)
	if h.sub != nil {
		s.freed[h.sub.id]++
	}
}
