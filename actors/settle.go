package actors

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
)

// ackPatience is how many acks of a shard wait at most for ready tasks to be held.
const ackPatience = 8 * batchItems

// settleCall is a set of settlements that are answered together.
type settleCall struct {
	asked   []Settlement
	tokens  []store.Token
	results []Settled
	*countdown
}

func newSettleCall(asked []Settlement, done func([]Settled)) *settleCall {
	c := &settleCall{
		asked:   asked,
		tokens:  make([]store.Token, len(asked)),
		results: make([]Settled, len(asked)),
	}
	c.countdown = newCountdown(len(asked), func() { done(c.results) })
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
	retries
	known bool          // retries is set
	lasts time.Duration // extends: what the hold lasted at first; 0 unknown
	until store.Millis  // the hold's deadline, as far as is known; else 0
}

// resultSize is what counts of an ack.
func resultSize(it *settleItem) int { return len(it.ask.Result) }

func (it *settleItem) token() store.Token { return it.call.tokens[it.i] }

func (it *settleItem) finish(edit func(r *Settled)) {
	edit(&it.call.results[it.i])
	it.call.finish(1)
}

// outlived reports whether the hold was alive at a moment that the store's clock had
// not passed: nobody but the token's worker can have ended it then.
func (it *settleItem) outlived(latest store.Millis) bool { return latest < it.until }

func (it *settleItem) refuse(err *Error) { it.finish(func(r *Settled) { r.Err = err }) }

func (m *settleHolds) fail(err *Error) {
	for _, i := range m.items {
		m.call.results[i].Err = err
		m.call.finish(1)
	}
}

func refuseAll(items []settleItem, err *Error) {
	for i := range items {
		items[i].refuse(err)
	}
}

// settle queues settlements, each kind for its store call.
func (s *shard) settle(m *settleHolds) {
	for _, i := range m.items {
		it := settleItem{call: m.call, i: i, ask: &m.call.asked[i]}
		if h := s.held.get(it.ask.ID, it.token()); h != nil {
			it.until = h.deadline
			if h.sub != nil {
				it.retries, it.known, it.lasts = h.retries, !h.foreign, h.lasts
			}
		}
		switch it.ask.Kind {
		case SettleAck:
			s.acks.waiting = append(s.acks.waiting, it)
		case SettleExtend:
			s.extends.waiting = append(s.extends.waiting, it)
		default:
			s.nacks.waiting = append(s.nacks.waiting, it)
		}
	}
	s.flyLater()
}

func (s *shard) flushSettles() {
	if batch := s.nextAcks(); batch != nil {
		retention := s.topic.DoneRetention
		s.call(func(ctx context.Context) reply { return s.storeAcks(ctx, batch, retention) })
	}
	if batch := s.nacks.next(); batch != nil {
		topic := s.topic
		s.call(func(ctx context.Context) reply { return s.storeNacks(ctx, batch, topic) })
	}
	if batch := s.extends.next(); batch != nil {
		topic := s.topic
		s.call(func(ctx context.Context) reply { return s.storeExtends(ctx, batch, topic) })
	}
}

// nextAcks lets ready tasks go before acks: a task waits for its worker, an ack only
// for the room that it makes, of which there is some while there is something to
// hold. So acks make larger batches when both have to wait.
func (s *shard) nextAcks() []settleItem {
	if len(s.holds.waiting) > 0 && len(s.acks.waiting) < ackPatience {
		return nil
	}
	return s.acks.next()
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
	m.repeated, m.err = s.resolve(ctx, func() (err error) {
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
		refuseAll(m.batch, storeError(m.err))
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
			m.batch[i].refuse(errHoldLost(m.batch[i].ask.ID))
		}
	}
}

func (s *shard) onAcks(m *acksDone) {
	s.acks.landed()
	var ended []EndedHold
	for i, status := range m.statuses {
		it := &m.batch[i]
		id, token := it.ask.ID, it.token()
		if status == store.OK || status == store.NotFound && s.answerGone(m, it) {
			ended = append(ended, EndedHold{id, token})
			s.acked.add(id, token)
			s.metrics.acked.Inc()
		}
		s.unregister(id, token)
	}
	s.tellEnded(ended)
	s.tellHoldsSettled(ended)
	s.noteError(m.err)
	s.flyLater()
}

// answerGone answers the ack of a task that is gone. When the answer of a first try
// was lost, that may be why; it reports whether that is certain.
func (s *shard) answerGone(m *acksDone, it *settleItem) (ended bool) {
	ended = m.repeated && it.outlived(m.latest)
	switch id := it.ask.ID; {
	case ended || s.acked.has(id, it.token()):
		it.finish(func(r *Settled) { r.Already = true })
	case m.repeated:
		it.refuse(storeError(store.ErrUnknown))
	default:
		it.refuse(errHoldLost(id))
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
			nacks[i] = nackFor(batch[i].ask, batch[i].token(), batch[i].retries, s.random())
		}
		m.repeated, m.err = s.resolve(ctx, func() error {
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
		refuseAll(m.batch, storeError(m.err))
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
		it.refuse(storeError(store.ErrUnknown))
	default:
		it.refuse(errHoldLost(it.ask.ID))
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
	_, found, err := s.store.Get(ctx, s.id, ids)
	if err != nil {
		return err
	}
	for k, i := range at {
		batch[i].retries = retriesOf(&found[k].Task, topic)
	}
	return nil
}

func (s *shard) onNacks(m *nacksDone) {
	s.nacks.landed()
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
			s.tellSettled(s.id, it.ask.ID)
		}
	}
	s.tellEnded(ended)
	if len(again) > 0 {
		s.becamePending(m.seq, again)
	}
	if m.repeated {
		s.lower(m.began)
	}
	s.noteError(m.err)
	s.flyLater()
}

func (s *shard) storeExtends(ctx context.Context, batch []settleItem, topic *store.Topic) *extendsDone {
	m := &extendsDone{batch: batch}
	extends := make([]store.Extend, len(batch))
	for i := range batch {
		extends[i] = store.Extend{ID: batch[i].ask.ID, Token: batch[i].token(), Visibility: or(batch[i].ask.Extend, or(batch[i].lasts, topic.Visibility))}
	}
	_, m.err = s.resolve(ctx, func() (err error) {
		_, m.results, err = s.store.Extend(ctx, s.id, extends)
		return err
	})
	m.now = s.now()
	return m
}

func (m *extendsDone) answer() {
	if m.err != nil {
		refuseAll(m.batch, storeError(m.err))
		return
	}
	for i, r := range m.results {
		if r.Status != store.OK {
			m.batch[i].refuse(errHoldLost(m.batch[i].ask.ID))
			continue
		}
		m.batch[i].finish(func(out *Settled) { out.HoldFor, out.Cancelled = r.Deadline.Sub(m.now), r.Cancelled })
	}
}

func (s *shard) onExtends(m *extendsDone) {
	s.extends.landed()
	for i, r := range m.results {
		it := &m.batch[i]
		if r.Status == store.OK {
			s.moveDeadline(it.ask.ID, it.token(), r.Deadline)
		} else {
			s.unregister(it.ask.ID, it.token())
		}
	}
	s.noteError(m.err)
	s.flyLater()
}

// ackLog remembers the last acks of a shard, so that the same ack again is told
// from one that comes too late, also when the task is gone. An ack is kept until
// another one takes its place.
type ackLog struct{ places []ackPlace }

type ackPlace struct {
	id    uint64 // hash
	token store.Token
}

const ackLogSize = 4096

func (l *ackLog) place(id uint64) *ackPlace { return &l.places[id/ackSpread%ackLogSize] }

// ackSpread skips the bits of the hash that chose the shard.
const ackSpread = 256

func (l *ackLog) add(id string, token store.Token) {
	if l.places == nil {
		l.places = make([]ackPlace, ackLogSize)
	}
	hash := hashID(id)
	*l.place(hash) = ackPlace{hash, token}
}

func (l *ackLog) has(id string, token store.Token) bool {
	hash := hashID(id)
	return l.places != nil && *l.place(hash) == ackPlace{hash, token}
}
