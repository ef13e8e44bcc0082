package actors

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/store"
)

// expired is a hold that has run out, as far as the shard knows.
type expired struct {
	id      string
	token   store.Token
	retries agenda.Retries
	known   bool // retries is set
}

// onDeadlines queues holds whose deadline passed. The store looks again: an
// extend or a settlement at another node may have come in between.
func (s *shard) onDeadlines(ms int64) {
	if s.tooEarly(ms) {
		s.held.Rearm(store.Millis(ms))
		return
	}
	for _, h := range s.held.Take(store.Millis(ms)) {
		if !s.claim.Owned() { // for whoever does to recover; here it only makes room
			delete(s.permits, h.ID) // the hold may have been extended
			s.unregister(h.ID, h.Token)
			continue
		}
		s.recovers.Waiting = append(s.recovers.Waiting, expired{
			id: h.ID, token: h.Token, retries: h.Retries, known: h.Sub != nil && !h.Foreign,
		})
	}
	s.scheduleFlush()
}

func (s *shard) flushRecovers() {
	if !s.claim.Owned() {
		return
	}
	if batch := s.recovers.Next(); batch != nil {
		fence, topic := s.claim.Fence(), s.topic
		s.calls.Run(func(ctx context.Context) { s.done(s.storeRecover(ctx, fence, batch, topic)) })
	}
}

func (s *shard) storeRecover(ctx context.Context, fence store.Fence, batch []expired, topic *store.Topic) *recovered {
	m := &recovered{batch: batch, unseen: unseen{began: s.now()}}
	if m.nacks, m.err = s.fates(ctx, batch, topic); m.err != nil {
		return m
	}
	m.repeated, m.err = s.Resolve(ctx, func() error {
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
		if _, found, err = store.GetAll(ctx, s.store, s.id, ids); err != nil {
			return nil, err
		}
	}
	nacks := make([]store.Nack, len(batch))
	for i, e := range batch {
		if !e.known {
			e.retries, found = agenda.RetriesOf(&found[0].Task, topic), found[1:]
		}
		n := store.Nack{ID: e.id, Token: e.token, Error: "the worker did not settle the task in time", Outcome: store.OutcomeHoldExpired}
		nacks[i] = e.retries.Failed(n, store.ReasonHoldExpired, s.random())
	}
	return nacks, nil
}

func (s *shard) onRecovered(m *recovered) {
	if m.err != nil { // also that of the read before: there are no nacks then
		for _, e := range m.batch {
			s.retryDeadline(e.id, e.token)
		}
		m.nacks = nil
	}
	var again []store.Entry
	for i, n := range m.nacks {
		switch r := m.results[i]; r.Status {
		case store.NotDue:
			s.moveDeadline(n.ID, n.Token, r.Deadline)
		case store.OK:
			s.metrics.expired.Inc()
			s.unregister(n.ID, n.Token)
			if r.Due != 0 {
				again = append(again, store.Entry{ID: n.ID, Due: r.Due, Traits: r.Traits})
			} else {
				s.TellSettled(s.id, n.ID)
			}
		default:
			s.unregister(n.ID, n.Token)
		}
	}
	if len(again) > 0 {
		s.becamePending(m.seq, again)
	}
	if m.repeated {
		s.tasks.Lower(m.began)
	}
	s.noteError(m.err)
	s.scheduleFlush()
}

func (s *shard) moveDeadline(id string, token store.Token, to store.Millis) {
	if h := s.held.Get(id, token); h != nil {
		s.held.Move(h, to)
	}
}

// retryDeadline comes back to a hold that the store could not be asked about.
func (s *shard) retryDeadline(id string, token store.Token) {
	s.moveDeadline(id, token, s.now().Add(storeRetry))
}

// watch is the watchdog: it walks what the store says is running, and takes in
// holds that no timer knows, and then the oldest of what is due. The first walk
// after a claim brings back the holds of whoever owned the shard before. One that fails
// is made again after a pause.
func (s *shard) watch() {
	if s.watching || !s.claim.Owned() {
		return
	}
	s.watching = true
	first, pause := !s.claim.Inherited, s.watchPause()
	m := &runningFound{first: first, epoch: s.claim.Fence().Epoch, since: s.held.Added}
	s.calls.Run(func(ctx context.Context) {
		for cursor := ""; ; {
			var page []store.Running
			page, cursor, m.err = s.store.Running(ctx, s.id, cursor, loadPage)
			m.holds = append(m.holds, page...)
			if cursor == "" || m.err != nil {
				break
			}
		}
		if limits := s.ref.config.Load().Limits; m.err == nil && first && limits.Capped() {
			m.permits, m.err = s.inherit(ctx, &limits, m.holds)
		}
		if m.err == nil && !first { // the claim loads them anyway
			overdue := store.WindowQuery{To: s.now().Add(-watchSlack), Limit: loadPage}
			_, m.overdue, m.err = s.store.Window(ctx, s.id, overdue)
		}
		if m.err != nil {
			sleep(ctx, pause)
		}
		s.done(m)
	})
}

// watchPause is how long to wait should the next walk fail, too.
func (s *shard) watchPause() time.Duration {
	longest := max(storeRetry, s.cfg.WatchdogInterval)
	return min(storeRetry<<min(s.failedWalks, 10), longest)
}

// onRunning takes in the holds of a walk. Those with time left get a timer;
// those without were missed by one, and are counted.
func (s *shard) onRunning(m *runningFound) {
	s.watching = false
	if !s.claim.Owned() || m.epoch != s.claim.Fence().Epoch { // of a claim that is over
		s.watch()
		return
	}
	for _, r := range m.holds {
		switch h := s.held.ByID[r.ID]; {
		case h != nil && h.Token == r.Token:
			s.held.Move(h, h.Deadline) // a timer that fired while the shard was not ours was not acted on
			continue
		case h != nil && h.Nth > m.since: // granted since the walk began, so r is over
			continue
		}
		if !m.first && r.Deadline < s.now().Add(-watchSlack) {
			s.metrics.watchdog.Inc()
		}
		s.register(&agenda.Hold{ID: r.ID, Token: r.Token, Deadline: r.Deadline})
		if p := m.permits[r.ID]; p != nil {
			s.permitted(r.ID, p)
		}
	}
	s.takeOverdue(m.overdue)
	if m.err != nil {
		s.failedWalks++
		s.noteError(m.err)
		s.watch()
		return
	}
	s.claim.Inherited, s.failedWalks = true, 0
	s.sweep()
}

// takeOverdue takes in tasks that are due and that nothing in memory knew: a store
// that was set back between two looks at its seq has them again.
func (s *shard) takeOverdue(tasks []store.Entry) {
	s.tasks.Found(s.now(), tasks...)
}

// sweep looks through a slice of the shard's keys for tasks that fell out of
// their index.
func (s *shard) sweep() {
	if s.sweeping || !s.claim.Owned() {
		return
	}
	s.sweeping = true
	fence, cursor := s.claim.Fence(), s.sweepAt
	s.calls.Run(func(ctx context.Context) {
		m := &swept{}
		m.repaired, m.next, m.err = s.store.Sweep(ctx, s.id, fence, cursor, sweepPage)
		s.done(m)
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
		s.tasks.Reread()
		s.load()
	}
}
