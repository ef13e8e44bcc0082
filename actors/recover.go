package actors

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// expired is a hold that has run out, as far as the shard knows.
type expired struct {
	id      string
	token   store.Token
	retries retries
	known   bool // retries is set
}

// onDeadlines queues holds whose deadline passed. The store looks again: an
// extend or a settlement at another node may have come in between.
func (s *shard) onDeadlines(ms int64) {
	for _, h := range s.held.take(store.Millis(ms)) {
		if !s.owned { // for whoever does to recover; here it only makes room
			s.unregister(h.id, h.token)
			continue
		}
		s.recovers.waiting = append(s.recovers.waiting, expired{
			id: h.id, token: h.token, retries: h.retries, known: h.sub != nil && !h.foreign,
		})
	}
	s.flyLater()
}

func (s *shard) flushRecovers() {
	if !s.owned {
		return
	}
	if batch := s.recovers.next(); batch != nil {
		fence, topic := s.fence, s.topic
		s.calls.run(func(ctx context.Context) { s.post(s.storeRecover(ctx, fence, batch, topic)) })
	}
}

func (s *shard) storeRecover(ctx context.Context, fence store.Fence, batch []expired, topic *store.Topic) *recovered {
	m := &recovered{unseen: unseen{began: s.now()}}
	if m.nacks, m.err = s.fates(ctx, batch, topic); m.err != nil {
		return m
	}
	m.repeated, m.err = s.resolve(ctx, func() error {
		stamp, results, err := s.store.Recover(ctx, s.id, fence, m.nacks)
		m.seq, m.results = stamp.Seq, results
		return err
	})
	return m
}

// fates decides for each expired hold between another attempt and the dead letters.
func (s *shard) fates(ctx context.Context, batch []expired, topic *store.Topic) ([]store.Nack, error) {
	var ids []string
	for _, e := range batch {
		if !e.known {
			ids = append(ids, e.id)
		}
	}
	var found []store.Snapshot
	if len(ids) > 0 {
		var err error
		if _, found, err = s.store.Get(ctx, s.id, ids); err != nil {
			return nil, err
		}
	}
	nacks := make([]store.Nack, len(batch))
	for i, e := range batch {
		if !e.known {
			e.retries, found = retriesOf(&found[0].Task, topic), found[1:]
		}
		n := store.Nack{ID: e.id, Token: e.token, Error: "the worker did not settle the task in time", Outcome: store.OutcomeHoldExpired}
		nacks[i] = e.retries.failed(n, store.ReasonHoldExpired, s.random())
	}
	return nacks, nil
}

func (s *shard) onRecovered(m *recovered) {
	s.recovers.landed()
	var again []store.Entry
	for i, n := range m.nacks {
		if m.err != nil {
			s.retryDeadline(n.ID, n.Token)
			continue
		}
		switch r := m.results[i]; r.Status {
		case store.NotDue:
			s.moveDeadline(n.ID, n.Token, r.Deadline)
		case store.OK:
			s.metrics.expired.Inc()
			s.unregister(n.ID, n.Token)
			if r.Due != 0 {
				again = append(again, store.Entry{ID: n.ID, Due: r.Due, Traits: r.Traits})
			} else {
				s.tellSettled(s.id, n.ID)
			}
		default:
			s.unregister(n.ID, n.Token)
		}
	}
	if len(again) > 0 {
		s.becamePending(m.seq, again)
	}
	if m.repeated {
		s.lower(m.began)
	}
	s.noteError(m.err)
	s.flyLater()
}

func (s *shard) moveDeadline(id string, token store.Token, to store.Millis) {
	if h := s.held.get(id, token); h != nil {
		s.held.move(h, to)
	}
}

// retryDeadline comes back to a hold that the store could not be asked about.
func (s *shard) retryDeadline(id string, token store.Token) {
	s.moveDeadline(id, token, s.now().Add(storeRetry))
}

// watch is the watchdog: it walks what the store says is running, and takes in
// holds that no timer knows, and then the oldest of what is due. The first walk
// after a claim brings back the holds of whoever owned the shard before.
func (s *shard) watch(first bool) {
	if s.watching || !s.owned {
		return
	}
	s.watching = true
	s.calls.run(func(ctx context.Context) {
		m := &runningFound{first: first}
		for cursor := ""; ; {
			var page []store.Running
			page, cursor, m.err = s.store.Running(ctx, s.id, cursor, loadPage)
			m.holds = append(m.holds, page...)
			if cursor == "" || m.err != nil {
				break
			}
		}
		if m.err == nil && !first { // the claim loads them anyway
			overdue := store.WindowQuery{To: s.now().Add(-watchSlack), Limit: loadPage}
			_, m.overdue, m.err = s.store.Window(ctx, s.id, overdue)
		}
		s.post(m)
	})
}

// onRunning takes in the holds of a walk. Those with time left get a timer;
// those without were missed by one, and are counted.
func (s *shard) onRunning(m *runningFound) {
	s.watching = false
	for _, r := range m.holds {
		if h := s.held.byID[r.ID]; h != nil {
			s.held.move(h, h.deadline) // a timer that fired while the shard was not ours was not acted on
			continue
		}
		if !m.first && r.Deadline < s.now().Add(-watchSlack) {
			s.metrics.watchdog.Inc()
		}
		s.held.add(&hold{id: r.ID, token: r.Token, deadline: r.Deadline})
	}
	if s.owned {
		s.takeOverdue(m.overdue)
	}
	s.noteError(m.err)
	if m.err == nil {
		s.sweep()
	}
}

// takeOverdue takes in tasks that are due and that nothing in memory knew: a store
// that was set back between two looks at its seq has them again.
func (s *shard) takeOverdue(tasks []store.Entry) {
	for _, e := range tasks {
		s.keep(e)
	}
}

// sweep looks through a slice of the shard's keys for tasks that fell out of
// their index.
func (s *shard) sweep() {
	if s.sweeping || !s.owned {
		return
	}
	s.sweeping = true
	fence, cursor := s.fence, s.sweepAt
	s.calls.run(func(ctx context.Context) {
		m := &swept{}
		m.repaired, m.next, m.err = s.store.Sweep(ctx, s.id, fence, cursor, sweepPage)
		s.post(m)
	})
}

func (s *shard) onSwept(m *swept) {
	s.sweeping = false
	if m.err != nil {
		s.noteError(m.err)
		return
	}
	s.sweepAt = m.next
	if m.repaired > 0 {
		s.metrics.repaired.Add(float64(m.repaired))
		s.log.Warn("tasks repaired that no index knew", "topic", s.id.Topic, "shard", s.id.N, "tasks", m.repaired)
		s.reread()
		s.load()
	}
}
