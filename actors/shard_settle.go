package actors

import (
	"cmp"
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// ackPatience is how many acks of a shard wait at most for ready tasks to be held.
const ackPatience = 8 * store.BatchItems

// settleCall is a set of settlements that are answered together.
type settleCall struct {
	asked   []Settlement
	tokens  []store.Token
	results []Settled
	*Countdown
}

func newSettleCall(asked []Settlement, done func([]Settled)) *settleCall {
	c := &settleCall{
		asked:   asked,
		tokens:  make([]store.Token, len(asked)),
		results: make([]Settled, len(asked)),
	}
	c.Countdown = NewCountdown(len(asked), func() { done(c.results) })
	for i, a := range asked {
		c.results[i] = Settled{ID: a.ID, Token: a.Token, Kind: a.Kind}
	}
	return c
}

// settleItem is one settlement of a call.
type settleItem struct {
	call *settleCall
	i    int
	ask  *Settlement
	agenda.Retries
	known bool          // retries is set
	lasts time.Duration // extends: what the hold lasted at first; 0 unknown
	until store.Millis  // the hold's deadline, as far as is known; else 0
}

// resultSize is what counts of an ack.
func resultSize(it *settleItem) int { return len(it.ask.Result) }

func (it *settleItem) token() store.Token { return it.call.tokens[it.i] }

func (it *settleItem) finish(edit func(r *Settled)) {
	edit(&it.call.results[it.i])
	it.call.Finish(1)
}

// outlived reports whether the hold was alive at a moment that the store's clock had
// not passed: nobody but the token's worker can have ended it then.
func (it *settleItem) outlived(latest store.Millis) bool { return latest < it.until }

func (it *settleItem) refuse(err *problem.Error) { it.finish(func(r *Settled) { r.Err = err }) }

func (m *settleHolds) fail(err *problem.Error) {
	for _, i := range m.items {
		m.call.results[i].Err = err
		m.call.Finish(1)
	}
}

func refuseAll(items []settleItem, err *problem.Error) {
	for i := range items {
		items[i].refuse(err)
	}
}

// settle queues settlements, each kind for its store call.
func (s *shard) settle(m *settleHolds) {
	for _, i := range m.items {
		it := settleItem{call: m.call, i: i, ask: &m.call.asked[i]}
		if h := s.held.Get(it.ask.ID, it.token()); h != nil {
			it.until = h.Deadline
			if h.Sub != nil {
				it.Retries, it.known, it.lasts = h.Retries, !h.Foreign, h.Lasts
			}
		}
		switch it.ask.Kind {
		case SettleAck:
			s.acks.Waiting = append(s.acks.Waiting, it)
		case SettleExtend:
			s.extends.Waiting = append(s.extends.Waiting, it)
		default:
			s.nacks.Waiting = append(s.nacks.Waiting, it)
		}
	}
	s.scheduleFlush()
}

func (s *shard) flushSettles() {
	if batch := s.nextAcks(); batch != nil {
		retention := s.topic.DoneRetention
		s.call(func(ctx context.Context) reply { return s.storeAcks(ctx, batch, retention) })
	}
	if batch := s.nacks.Next(); batch != nil {
		topic := s.topic
		s.call(func(ctx context.Context) reply { return s.storeNacks(ctx, batch, topic) })
	}
	if batch := s.extends.Next(); batch != nil {
		topic := s.topic
		s.call(func(ctx context.Context) reply { return s.storeExtends(ctx, batch, topic) })
	}
}

// nextAcks lets ready tasks go before acks: a task waits for its worker, an ack only
// for the room that it makes, of which there is some while there is something to
// hold. So acks make larger batches when both have to wait.
func (s *shard) nextAcks() []settleItem {
	if len(s.holds.Waiting) > 0 && len(s.acks.Waiting) < ackPatience {
		return nil
	}
	return s.acks.Next()
}

func (s *shard) storeAcks(ctx context.Context, batch []settleItem, retention time.Duration) *acksDone {
	m := &acksDone{batch: batch}
	acks := make([]store.Ack, len(batch))
	for i := range batch {
		acks[i] = store.Ack{ID: batch[i].ask.ID, Token: batch[i].token()}
		if retention > 0 {
			acks[i].Result = batch[i].ask.Result
		}
	}
	m.repeated, m.err = s.Resolve(ctx, func() (err error) {
		_, m.statuses, err = s.store.Ack(ctx, s.id, acks, retention)
		return err
	})
	m.latest = s.latest()
	return m
}

// answer tells what it can: only the actor knows whether a task that is gone was
// acked by the same token.
func (m *acksDone) answer() {
	if m.err != nil {
		refuseAll(m.batch, problem.FromStore(m.err))
		return
	}
	for i, status := range m.statuses {
		switch status {
		case store.OK:
			m.batch[i].finish(func(*Settled) {})
		case store.Already:
			m.batch[i].finish(func(r *Settled) { r.Already = true })
		case store.NotFound:
		default:
			m.batch[i].refuse(problem.HoldLost(m.batch[i].ask.ID))
		}
	}
}

// fail answers what only the actor could: it is gone.
func (m *acksDone) fail(*problem.Error) {
	for i := m.answered; i < len(m.statuses); i++ {
		if m.statuses[i] == store.NotFound {
			m.batch[i].refuse(problem.FromStore(store.ErrUnknown))
		}
	}
}

func (s *shard) onAcks(m *acksDone) {
	var ended []EndedHold
	for i, status := range m.statuses {
		it := &m.batch[i]
		id, token := it.ask.ID, it.token()
		if status == store.OK || status == store.NotFound && s.answerGone(m, it) {
			ended = append(ended, EndedHold{id, token})
			s.acked.Add(id, token)
			s.metrics.acked.Inc()
		}
		m.answered = i + 1
		s.unregister(id, token)
	}
	s.tellEnded(ended)
	s.tellHoldsSettled(ended)
	s.noteError(m.err)
	s.scheduleFlush()
}

// answerGone answers the ack of a task that is gone. When the answer of a first try
// was lost, that may be why; it reports whether that is certain.
func (s *shard) answerGone(m *acksDone, it *settleItem) (ended bool) {
	ended = m.repeated && it.outlived(m.latest)
	switch id := it.ask.ID; {
	case ended || s.acked.Has(id, it.token()):
		it.finish(func(r *Settled) { r.Already = true })
	case m.repeated:
		it.refuse(problem.FromStore(store.ErrUnknown))
	default:
		it.refuse(problem.HoldLost(id))
	}
	return ended
}

// storeNacks runs off the actor. The fate of a task depends on its own policy,
// which is read first where it is not known; it cannot change while the task is
// held, and the token tells if it is not any more.
func (s *shard) storeNacks(ctx context.Context, batch []settleItem, topic *store.Topic) *nacksDone {
	m := &nacksDone{batch: batch, unseen: unseen{began: s.now()}}
	if m.err = s.readRetries(ctx, batch, topic); m.err == nil {
		nacks := make([]store.Nack, len(batch))
		for i := range batch {
			nacks[i] = nackFor(batch[i].ask, batch[i].token(), batch[i].Retries, s.random())
		}
		m.repeated, m.err = s.Resolve(ctx, func() error {
			stamp, results, err := s.store.Nack(ctx, s.id, nacks)
			m.seq, m.results = stamp.Seq, results
			return err
		})
	}
	m.now, m.latest = s.now(), s.latest()
	return m
}

func (m *nacksDone) answer() {
	if m.err != nil {
		refuseAll(m.batch, problem.FromStore(m.err))
		return
	}
	for i, r := range m.results {
		if r.Status != store.OK {
			m.answerLost(&m.batch[i], r)
			continue
		}
		m.batch[i].finish(func(out *Settled) {
			out.Due, out.State = r.Due, store.StateDead
			if r.Due != 0 {
				out.State = store.PendingState(r.Due, m.now, r.Attempt)
			}
		})
	}
}

// answerLost answers for a hold that is over. When the answer of a first try was
// lost, that try may have ended it.
func (m *nacksDone) answerLost(it *settleItem, r store.NackResult) {
	switch {
	case m.repeated && it.outlived(m.latest):
		it.finish(func(out *Settled) { out.State = r.State })
	case m.repeated:
		it.refuse(problem.FromStore(store.ErrUnknown))
	default:
		it.refuse(problem.HoldLost(it.ask.ID))
	}
}

func (s *shard) readRetries(ctx context.Context, batch []settleItem, topic *store.Topic) error {
	var ids []string
	var at []int
	for i := range batch {
		if !batch[i].known {
			ids, at = append(ids, batch[i].ask.ID), append(at, i)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, found, err := store.GetAll(ctx, s.store, s.id, ids)
	if err != nil {
		return err
	}
	for k, i := range at {
		batch[i].Retries = agenda.RetriesOf(&found[k].Task, topic)
	}
	return nil
}

func (s *shard) onNacks(m *nacksDone) {
	var again []store.Entry
	var ended []EndedHold
	for i, r := range m.results {
		it := &m.batch[i]
		s.unregister(it.ask.ID, it.token())
		if r.Status != store.OK {
			continue
		}
		ended = append(ended, EndedHold{it.ask.ID, it.token()})
		s.metrics.countNack(it.ask, r.Due == 0)
		if r.Due != 0 {
			again = append(again, store.Entry{ID: it.ask.ID, Due: r.Due, Traits: r.Traits})
		} else {
			s.TellSettled(s.id, it.ask.ID)
		}
	}
	s.tellEnded(ended)
	if len(again) > 0 {
		s.becamePending(m.seq, again)
	}
	if m.repeated {
		s.tasks.Lower(m.began)
	}
	s.noteError(m.err)
	s.scheduleFlush()
}

func (s *shard) storeExtends(ctx context.Context, batch []settleItem, topic *store.Topic) *extendsDone {
	m := &extendsDone{batch: batch}
	extends := make([]store.Extend, len(batch))
	for i := range batch {
		extends[i] = store.Extend{ID: batch[i].ask.ID, Token: batch[i].token(), Visibility: cmp.Or(batch[i].ask.Extend, cmp.Or(batch[i].lasts, topic.Visibility))}
	}
	limits := topic.Limits
	if limits.Capped() {
		m.err = s.movePermits(ctx, &limits, extends)
	}
	if m.err == nil {
		_, m.err = s.Resolve(ctx, func() (err error) {
			_, m.results, err = s.store.Extend(ctx, s.id, extends)
			return err
		})
	}
	if limits.Capped() && m.err == nil {
		s.freeOver(ctx, extends, m.results, &limits)
	}
	m.latest = s.latest()
	return m
}

func (m *extendsDone) answer() {
	if m.err != nil {
		refuseAll(m.batch, problem.FromStore(m.err))
		return
	}
	for i, r := range m.results {
		if r.Status != store.OK {
			m.batch[i].refuse(problem.HoldLost(m.batch[i].ask.ID))
			continue
		}
		m.batch[i].finish(func(out *Settled) { out.HoldFor, out.Cancelled = r.Deadline.Sub(m.latest), r.Cancelled })
	}
}

func (s *shard) onExtends(m *extendsDone) {
	for i, r := range m.results {
		it := &m.batch[i]
		if r.Status == store.OK {
			s.moveDeadline(it.ask.ID, it.token(), r.Deadline)
		} else {
			s.unregister(it.ask.ID, it.token())
		}
	}
	s.noteError(m.err)
	s.scheduleFlush()
}

// passCancels passes on that the cancellation of tasks was asked for, to who holds them.
// Who holds them on a stream that is gone learns it from the answer to an extend.
func (s *shard) passCancels(holds []EndedHold) {
	for _, e := range holds {
		h := s.held.Get(e.ID, e.Token)
		if h == nil {
			continue
		}
		if sub, ok := h.Sub.(*subscriber); ok && !sub.gone.Load() {
			s.send(sub.worker, &cancelAsked{CancelAsk{e.ID, encodeToken(s.id.N, e.Token)}})
		}
	}
}
