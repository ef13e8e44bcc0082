package shard

import (
	"cmp"
	"context"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// ackPatience is how many acks of a shard wait at most for ready tasks to be held.
const ackPatience = 8 * store.BatchItems

// What the settler's store calls came to, each in a CallDone.
type (
	acksDone struct {
		batch    []settleItem
		permits  unknownPermits
		statuses []store.Status // 0: answered already, with an error
		repeated bool           // an answer was lost on the way
		latest   store.Millis   // the store's clock had not passed it
		answered int            // of statuses, by the actor; the others it has not seen
		err      error
	}
	nacksDone struct {
		seq     int64
		batch   []settleItem
		permits unknownPermits
		results []store.NackResult
		now     store.Millis
		latest  store.Millis
		unseen
		err error
	}
	extendsDone struct {
		batch   []settleItem
		results []store.ExtendResult
		latest  store.Millis // the store's clock had not passed it
		err     error
	}
)

// settler ends holds, and extends them: at any node, under their token.
type settler struct {
	*shardState
	claim    *claimer
	notifier *notifier
	permits  *permitCalls
	holds    *holdRegistry
	toHold   func() bool // ready tasks wait to be held
	store    interface {
		store.Writer
		store.Reader
	}
	acks        engine.Batcher[settleItem]
	nexts       engine.Batcher[settleItem] // acks that enqueue
	nacks       engine.Batcher[settleItem] // and releases
	extends     engine.Batcher[settleItem]
	checkpoints engine.Batcher[settleItem]
	acked       agenda.AckLog
}

func newSettler(claim *claimer, notifier *notifier, permits *permitCalls, holds *holdRegistry, toHold func() bool) settler {
	b := claim.shardState
	batches := engine.Batcher[settleItem]{Most: 1, Limit: b.knobs().SettleBatch}
	acks := batches
	acks.Size = resultSize
	checkpoints := batches
	checkpoints.Size = checkpointSize
	return settler{
		shardState: b, claim: claim, notifier: notifier, permits: permits, holds: holds, toHold: toHold, store: b.Store,
		acks: acks, nexts: engine.Batcher[settleItem]{Most: 1, Limit: b.knobs().NextBatch, Size: nextSize}, nacks: batches, extends: batches, checkpoints: checkpoints,
	}
}

// receive handles a message of the settler.
func (s *settler) receive(message any, own bool) {
	switch m := message.(type) {
	case *SettleHolds:
		s.settle(m)
	case *acksDone:
		if own {
			s.acks.Done()
		}
		s.onAcks(m)
	case *nextsDone:
		if own {
			s.nexts.Done()
		}
		s.onNexts(m)
	case *nacksDone:
		if own {
			s.nacks.Done()
		}
		s.onNacks(m)
	case *extendsDone:
		if own {
			s.extends.Done()
		}
		s.onExtends(m)
	case *checkpointsDone:
		if own {
			s.checkpoints.Done()
		}
		s.onCheckpoints(m)
	}
}

// settle queues settlements, each kind for its store call.
func (s *settler) settle(m *SettleHolds) {
	for _, i := range m.Items {
		it := settleItem{call: m.Call, i: i, ask: &m.Call.Asked[i]}
		if h := s.holds.get(it.ask.ID, it.token()); h != nil {
			it.until = h.Deadline
			if h.Sub != nil {
				it.Retries, it.known, it.lasts = h.Retries, !h.Foreign, h.Lasts
			}
		} else {
			it.capped = s.topic.Limits.Capped()
		}
		switch it.ask.Kind {
		case subscription.SettleAck:
			if it.ask.Next != nil {
				s.nexts.Waiting = append(s.nexts.Waiting, it)
				continue
			}
			s.acks.Waiting = append(s.acks.Waiting, it)
		case subscription.SettleExtend:
			s.extends.Waiting = append(s.extends.Waiting, it)
		case subscription.SettleCheckpoint:
			s.checkpoints.Waiting = append(s.checkpoints.Waiting, it)
		default:
			s.nacks.Waiting = append(s.nacks.Waiting, it)
		}
	}
	s.scheduleFlush()
}

// releaseUnseen gives back holds that no worker will hear of.
func (s *settler) releaseUnseen(tasks []subscription.HeldTask) {
	if len(tasks) == 0 {
		return
	}
	asked := make([]subscription.Settlement, len(tasks))
	for i, h := range tasks {
		asked[i] = subscription.Settlement{Kind: subscription.SettleRelease, ID: h.Task.ID, Token: subscription.EncodeToken(s.id.N, h.Token), Unseen: true}
	}
	call := NewSettleCall(asked, func([]subscription.Settled) {})
	items := make([]int, len(tasks))
	for i, h := range tasks {
		call.Tokens[i], items[i] = h.Token, i
	}
	s.settle(&SettleHolds{Call: call, Items: items})
}

func (s *settler) flush() {
	if batch := s.nextAcks(); batch != nil {
		topic := s.topic
		s.call(func(ctx context.Context) reply { return s.storeAcks(ctx, batch, topic) })
	}
	if batch := s.nexts.Next(); batch != nil {
		topic := s.topic
		s.call(func(ctx context.Context) reply { return s.storeNexts(ctx, batch, topic) })
	}
	if batch := s.nacks.Next(); batch != nil {
		topic := s.topic
		s.call(func(ctx context.Context) reply { return s.storeNacks(ctx, batch, topic) })
	}
	if batch := s.extends.Next(); batch != nil {
		topic := s.topic
		s.call(func(ctx context.Context) reply { return s.storeExtends(ctx, batch, topic) })
	}
	if batch := s.checkpoints.Next(); batch != nil {
		s.call(func(ctx context.Context) reply { return s.storeCheckpoints(ctx, batch) })
	}
}

func (s *settler) idle() bool {
	return s.acks.Idle() && s.nexts.Idle() && s.nacks.Idle() && s.extends.Idle() && s.checkpoints.Idle()
}

func (s *settler) fenced() int { return 0 } // any node settles

func (s *settler) lose() {}

func (s *settler) stop() {
	refuseAll(s.acks.Waiting, problem.Draining())
	refuseAll(s.nexts.Waiting, problem.Draining())
	refuseAll(s.nacks.Waiting, problem.Draining())
	refuseAll(s.extends.Waiting, problem.Draining())
	refuseAll(s.checkpoints.Waiting, problem.Draining())
}

// nextAcks lets ready tasks go before acks. A task waits for its worker; an ack only makes
// room, and there is room as long as there are tasks to hold. So acks make larger batches
// when both have to wait.
func (s *settler) nextAcks() []settleItem {
	if s.toHold() && len(s.acks.Waiting) < ackPatience {
		return nil
	}
	return s.acks.Next()
}

func (s *settler) storeAcks(ctx context.Context, batch []settleItem, topic *store.Topic) *acksDone {
	m := &acksDone{batch: batch, permits: s.permits.unknown(ctx, &topic.Limits, batch)}
	acks, retention := make([]store.Ack, len(batch)), topic.DoneRetention
	for i := range batch {
		// Also where nothing is retained: only the store knows whether a cell is told.
		acks[i] = store.Ack{ID: batch[i].ask.ID, Token: batch[i].token(), Result: batch[i].ask.Result, Say: batch[i].ask.Say, Trace: batch[i].ask.Trace}
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
		case 0:
		case store.OK:
			m.batch[i].finish(func(*subscription.Settled) {})
		case store.Already:
			m.batch[i].finish(func(r *subscription.Settled) { r.Already = true })
		case store.NotFound:
		case store.NoCell:
			m.batch[i].refuse(problem.NoStep(m.batch[i].ask.ID))
		default:
			m.batch[i].refuse(problem.HoldLost(m.batch[i].ask.ID))
		}
	}
}

// fail answers what only the actor could: it is gone.
func (m *acksDone) Fail(*problem.Error) {
	for i := m.answered; i < len(m.statuses); i++ {
		if m.statuses[i] == store.NotFound {
			m.batch[i].refuse(problem.FromStore(store.ErrUnknown))
		}
	}
}

func (s *settler) onAcks(m *acksDone) {
	var ended []fleet.EndedHold
	for i, status := range m.statuses {
		it := &m.batch[i]
		id, token := it.ask.ID, it.token()
		if status == store.OK || status == store.NotFound && s.answerGone(m, it) {
			ended = append(ended, fleet.EndedHold{ID: id, Token: token})
			m.permits.end(s.report, token)
			s.acked.Add(id, token)
		}
		m.answered = i + 1
		if status != store.NoCell && status != 0 {
			s.holds.unregister(id, token)
		}
	}
	s.Metrics.Acked.Add(float64(len(ended)))
	s.notifier.tellEnded(ended)
	s.notifier.tellSettled(ended)
	s.claim.noteError(m.err)
	s.scheduleFlush()
}

// answerGone answers the ack of a task that is gone. When the answer of a first try
// was lost, that may be why; it reports whether that is certain.
func (s *settler) answerGone(m *acksDone, it *settleItem) (ended bool) {
	ended = m.repeated && it.outlived(m.latest)
	switch id := it.ask.ID; {
	case ended || s.acked.Has(id, it.token()):
		it.finish(func(r *subscription.Settled) { r.Already = true })
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
func (s *settler) storeNacks(ctx context.Context, batch []settleItem, topic *store.Topic) *nacksDone {
	m := &nacksDone{batch: batch, permits: s.permits.unknown(ctx, &topic.Limits, batch), unseen: unseen{began: s.Now()}}
	if m.err = s.readRetries(ctx, batch, topic); m.err == nil {
		nacks := make([]store.Nack, len(batch))
		for i := range batch {
			nacks[i] = nackFor(batch[i].ask, batch[i].token(), batch[i].Retries, s.Random())
		}
		m.repeated, m.err = s.Resolve(ctx, func() error {
			stamp, results, err := s.store.Nack(ctx, s.id, nacks)
			m.seq, m.results = stamp.Seq, results
			return err
		})
	}
	m.now, m.latest = s.Now(), s.latest()
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
		m.batch[i].finish(func(out *subscription.Settled) {
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
		it.finish(func(out *subscription.Settled) { out.State = r.State })
	case m.repeated:
		it.refuse(problem.FromStore(store.ErrUnknown))
	default:
		it.refuse(problem.HoldLost(it.ask.ID))
	}
}

func (s *settler) readRetries(ctx context.Context, batch []settleItem, topic *store.Topic) error {
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

func (s *settler) onNacks(m *nacksDone) {
	var again []store.Entry
	var ended []fleet.EndedHold
	for i, r := range m.results {
		it := &m.batch[i]
		s.holds.unregister(it.ask.ID, it.token())
		if r.Status != store.OK {
			continue
		}
		ended = append(ended, fleet.EndedHold{ID: it.ask.ID, Token: it.token()})
		m.permits.end(s.report, it.token())
		s.Metrics.CountNack(it.ask, r.Due == 0)
		if r.Due != 0 {
			again = append(again, store.Entry{ID: it.ask.ID, Due: r.Due, Traits: r.Traits})
		} else {
			s.TellSettled(s.id, it.ask.ID)
		}
	}
	s.notifier.tellEnded(ended)
	if len(again) > 0 {
		s.notifier.becamePending(m.seq, again)
	}
	if m.repeated {
		s.tasks.Lower(m.began)
	}
	s.claim.noteError(m.err)
	s.scheduleFlush()
}

func (s *settler) storeExtends(ctx context.Context, batch []settleItem, topic *store.Topic) *extendsDone {
	m := &extendsDone{batch: batch}
	extends := make([]store.Extend, len(batch))
	for i := range batch {
		extends[i] = store.Extend{ID: batch[i].ask.ID, Token: batch[i].token(), Visibility: cmp.Or(batch[i].ask.Extend, cmp.Or(batch[i].lasts, topic.Visibility))}
	}
	var caps [][]store.LimitKey
	if topic.Limits.Capped() {
		caps, m.err = s.permits.move(ctx, &topic.Limits, batch, extends)
	}
	if m.err == nil {
		_, m.err = s.Resolve(ctx, func() (err error) {
			_, m.results, err = s.store.Extend(ctx, s.id, extends)
			return err
		})
	}
	if caps != nil && m.err == nil {
		s.permits.freeOver(ctx, extends, m.results, caps)
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
		m.batch[i].finish(func(out *subscription.Settled) { out.HoldFor, out.Cancelled = r.Deadline.Sub(m.latest), r.Cancelled })
	}
}

func (s *settler) onExtends(m *extendsDone) {
	for i, r := range m.results {
		it := &m.batch[i]
		if r.Status == store.OK {
			s.holds.move(it.ask.ID, it.token(), r.Deadline)
		} else {
			s.holds.unregister(it.ask.ID, it.token())
		}
	}
	s.claim.noteError(m.err)
	s.scheduleFlush()
}
