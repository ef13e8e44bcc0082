package shard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard/outbox"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// nextsDone is what acks that enqueue came to: each is made with its tasks, or not at all. An ack of
// which a call behind the first one was to tell, and failed, has no status, and was refused alone.
type nextsDone struct {
	acksDone
	seq     int64
	began   store.Millis
	commits []store.Commit
	failed  error // of such a call
}

// nextSize is what counts of an ack that enqueues.
func nextSize(it *settleItem) int { return resultSize(it) + it.ask.Next.Bytes }

// storeNexts makes a commit of each ack.
func (s *settler) storeNexts(ctx context.Context, batch []settleItem, topic *store.Topic) *nextsDone {
	m := &nextsDone{acksDone: acksDone{batch: batch, permits: s.permits.unknown(ctx, &topic.Limits, batch)}, began: s.Now()}
	m.err = s.commitNexts(ctx, m, topic)
	m.latest = s.latest()
	return m
}

func (s *settler) commitNexts(ctx context.Context, m *nextsDone, topic *store.Topic) error {
	every, statuses := make([]int, len(m.batch)), make([]store.Status, len(m.batch))
	for i := range every {
		every[i] = i
	}
	m.commits = make([]store.Commit, len(m.batch))
	span := topic.Active()
	takes := s.id.N >= span.First && !topic.EnqueuePaused && topic.MaxBacklog == 0
	if err := s.tryNexts(ctx, m, topic, every, takes, statuses); err != nil {
		return err
	}
	m.statuses = statuses // those that are made stay made, whatever becomes of the rest

	if closed := having(statuses, store.Closed); len(closed) > 0 { // the topic has other shards by now
		if err := s.tryNexts(ctx, m, topic, closed, false, statuses); err != nil {
			m.refuse(closed, err)
		}
	}
	if lost := having(statuses, store.HoldLost); len(lost) > 0 {
		if err := s.findLost(ctx, m, topic, lost); err != nil {
			if m.repeated { // a first try may have ended them
				err = store.ErrUnknown
			}
			m.refuse(lost, err)
		}
	}
	return nil
}

// refuse answers some acks of a batch: what became of them is not known.
func (m *nextsDone) refuse(some []int, err error) {
	m.failed = err
	for _, i := range some {
		m.statuses[i] = 0
		m.batch[i].refuse(problem.FromStore(err))
	}
}

// tryNexts makes the commits of some acks of a batch. With takes this shard takes tasks.
func (s *settler) tryNexts(ctx context.Context, m *nextsDone, topic *store.Topic, some []int, takes bool, statuses []store.Status) (err error) {
	commits := make([]store.Commit, len(some))
	for k, i := range some {
		if commits[k], err = s.commitOf(&m.batch[i], topic, takes); err != nil {
			return err
		}
		m.commits[i] = commits[k]
	}
	var results []store.CommitResult
	repeated, err := s.Resolve(ctx, func() error {
		stamp, done, err := s.Cells.Commit(ctx, s.id.For(topic.Life), nil, commits)
		m.seq, results = stamp.Seq, done
		return err
	})
	m.repeated = m.repeated || repeated
	for k := range results {
		statuses[some[k]] = results[k].Status
	}
	return err
}

// findLost asks why holds are over: an ack without tasks, which can end nothing any more, says it.
func (s *settler) findLost(ctx context.Context, m *nextsDone, topic *store.Topic, lost []int) error {
	acks := make([]store.Ack, len(lost))
	for k, i := range lost {
		acks[k] = m.commits[i].Acks[0]
	}
	_, why, err := s.store.Ack(ctx, s.id, acks, topic.DoneRetention)
	if err != nil {
		return err
	}
	for k, i := range lost {
		m.statuses[i] = why[k]
	}
	return nil
}

func having(statuses []store.Status, status store.Status) (at []int) {
	for i, s := range statuses {
		if s == status {
			at = append(at, i)
		}
	}
	return at
}

// commitOf ends a hold and enqueues what comes next. Tasks that may have any id are made in
// this shard, if it takes some; the others go into the out-box, and wait there for their topic.
func (s *settler) commitOf(it *settleItem, topic *store.Topic, takes bool) (store.Commit, error) {
	ack := store.Ack{ID: it.ask.ID, Token: it.token(), Result: it.ask.Result, Say: it.ask.Say, Trace: it.ask.Trace}
	c := store.Commit{Acks: []store.Ack{ack}, Retention: topic.DoneRetention}
	cause, span := &store.Cause{Topic: s.id.Topic, ID: it.ask.ID}, topic.Active()
	for i := range it.ask.Next.Tasks {
		next := &it.ask.Next.Tasks[i]
		t := next.Task
		t.Cause = cause
		if takes && next.AnyID && next.Topic == s.id.Topic {
			t.ID = place.IDIn(nextSum(ack.Token, i), s.id.N-span.First, span.Shards)
			c.Adds = append(c.Adds, &t)
			continue
		}
		p, err := message.Parcel(next.Topic, &t)
		if err != nil {
			return c, err
		}
		c.Send = append(c.Send, p)
	}
	return c, nil
}

// nextSum tells the tasks of all acks apart.
func nextSum(token store.Token, i int) []byte {
	sum := sha256.Sum256(binary.BigEndian.AppendUint16(token[:len(token):len(token)], uint16(i)))
	return sum[:]
}

func (s *settler) onNexts(m *nextsDone) {
	var fresh []store.Entry
	var queues []store.Queue
	parcels := 0
	for i, status := range m.statuses {
		if status != store.OK {
			continue
		}
		parcels += len(m.commits[i].Send)
		queues = m.commits[i].SentTo(queues, s.id.For(s.topic.Life))
		fresh = append(fresh, store.EntriesOf(m.commits[i].Adds)...)
	}
	s.Metrics.CountAckEnqueued(len(fresh), parcels)
	if len(fresh) > 0 {
		s.notifier.becamePending(m.seq, fresh)
	}
	if m.repeated { // what a lost answer was about is in no status
		s.tasks.Lower(m.began)
	}
	if parcels > 0 || m.repeated {
		s.post(&outbox.Sent{Queues: queues})
	}
	s.claim.noteError(m.failed)
	s.onAcks(&m.acksDone)
}
