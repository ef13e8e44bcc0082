package actors

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	claimRetry = 250 * time.Millisecond // pause before claiming again after an error
	ownedRetry = 50 * time.Millisecond  // and while another node owns the shard
	ownedTries = 100                    // after that many the pause is claimRetry
	aloneTries = 60                     // that many take longer than the lease of a dead server
)

// place takes in whether this node should own the shard. Another node that owns
// it still gives it up by itself, or loses its lease.
func (s *shard) place(wanted bool) {
	s.wanted = wanted
	if wanted {
		s.refusals = 0
		s.claim()
		return
	}
	s.handOver()
}

// claim asks the store for ownership, again and again until it is granted.
func (s *shard) claim() {
	if !s.wanted || !s.unclaimed() || s.keeper.err() != nil {
		return // owned, on the way, not for us, or for leaseBack to start
	}
	s.claiming = true
	session, pause := s.keeper.session(), s.claimPause()
	remind := s.refusals > 0 && s.refusals%ownedTries == 0
	s.calls.run(func(ctx context.Context) {
		m := s.storeClaim(ctx, session)
		switch {
		case errors.Is(m.err, store.ErrOwned):
			if remind {
				s.remind(ctx)
			}
			sleep(ctx, pause)
		case m.err != nil:
			sleep(ctx, claimRetry)
		}
		s.post(m)
	})
}

// unclaimed reports whether the shard is not owned, and no claim or release of it is on
// the way.
func (s *shard) unclaimed() bool {
	return !s.owned && !s.claiming && s.giving == nil && s.given == 0 && s.releasing == nil
}

func (s *shard) storeClaim(ctx context.Context, session store.Session) *claimed {
	stamp, fence, err := s.store.Claim(ctx, s.id, session)
	return &claimed{seq: stamp.Seq, fence: fence, err: err}
}

// remind has the node that owns the shard in the store look whether it should: after a
// failover that undid its release, or a claim whose answer was lost, it does not know
// that it does, and would for as long as it lives.
func (s *shard) remind(ctx context.Context) {
	stats, err := s.store.Stats(ctx, []store.Shard{s.id})
	if err != nil {
		return
	}
	if m, there := s.fleet.member(stats[0].Owner); there && m.Name != s.cfg.Node {
		s.fleet.peers.Notify(m, Notice{Released: []store.Shard{s.id}})
	}
}

// disown releases the shard if it is this node's in the store, though it does not know
// of it: it claims it, which hands it over at once, because it is not wanted.
func (s *shard) disown() {
	if s.wanted || !s.unclaimed() || s.keeper.err() != nil {
		return
	}
	s.claiming = true
	session := s.keeper.session()
	s.calls.run(func(ctx context.Context) {
		m := &claimed{err: store.ErrOwned}
		stats, err := s.store.Stats(ctx, []store.Shard{s.id})
		if err == nil && stats[0].Owner == s.cfg.Node {
			m = s.storeClaim(ctx, session)
		}
		s.post(m)
	})
}

// claimPause is how long to wait when the shard is another node's. Most are given
// up at once; the jitter keeps those of a dead node apart.
func (s *shard) claimPause() time.Duration {
	if s.refusals >= ownedTries {
		return claimRetry
	}
	return ownedRetry/2 + time.Duration(s.random()*float64(ownedRetry))
}

func (s *shard) onClaimed(m *claimed) {
	s.claiming = false
	switch {
	case errors.Is(m.err, store.ErrSessionLost):
		s.keeper.lost(m.err)
	case errors.Is(m.err, store.ErrOwned):
		if s.refusals++; s.refusals == aloneTries && !s.fleet.hasOthers() {
			s.log.Warn("shard is owned by another server on this store, and this one knows no other: its workers get nothing of it; "+
				"stop one of them, or start both with --gossip-addr and --join", "topic", s.id.Topic, "shard", s.id.N)
		}
		s.claim()
	case m.err != nil:
		s.noteError(m.err)
		s.claim()
	default:
		s.own(m)
	}
}

func (s *shard) own(m *claimed) {
	s.log.Debug("shard claimed", "topic", s.id.Topic, "shard", s.id.N, "epoch", m.fence.Epoch)
	s.owned, s.fence, s.refusals, s.quiet, s.left = true, m.fence, 0, false, nil
	s.metrics.owned.Inc()
	s.seqs.restart(m.seq)
	s.send(s.parent, &shardOwned{shard: s.id.N})
	if !s.wanted { // placed elsewhere meanwhile
		s.handOver()
		return
	}
	s.reread()
	s.load()
	s.watch(true)
}

// lose gives up ownership: hints are dropped, holds run on at their workers.
func (s *shard) lose() {
	if !s.owned {
		return
	}
	s.owned = false
	s.metrics.owned.Dec()
	for _, r := range s.holds.waiting {
		s.refund(r.sub, 1)
		s.endLeave(r.leave)
	}
	s.holds.waiting = nil
	s.recovers.waiting = nil
	s.fresh = nil
	s.forgetPending()
	s.reread()
	s.send(s.parent, &shardLost{shard: s.id.N})
	for _, it := range s.holdNews.waiting {
		s.refund(it.sub, 1)
		it.sub = nil
		s.adds.waiting = append(s.adds.waiting, it)
	}
	s.holdNews.waiting = nil
	s.flyLater()
}

// handOver begins to give the shard up: nothing more is held, and once the calls
// that are under way have landed the claim is released.
func (s *shard) handOver() {
	if !s.owned {
		return
	}
	fence := s.fence
	s.lose()
	s.giving = &fence
}

// loseLease stops what the lease allowed. The claim stays in the store: this node takes
// it up again, or releases it once the shard is to be another's. With the lease back
// nobody else could claim it.
func (s *shard) loseLease() {
	if s.owned {
		fence := s.fence
		s.left = &fence
	}
	s.lose()
}

// forgo begins to release a claim that was left behind.
func (s *shard) forgo() {
	if s.left == nil || s.wanted || !s.unclaimed() {
		return
	}
	fence := *s.left
	s.left, s.giving = nil, &fence
}

// giveUp releases the claim that handOver ended.
func (s *shard) giveUp() {
	fence := *s.giving
	s.giving = nil
	s.given++
	s.calls.run(func(ctx context.Context) {
		m := &givenUp{fence: fence}
		if m.err = s.store.Release(ctx, s.id, fence); m.err != nil && !errors.Is(m.err, store.ErrFenced) {
			s.log.Debug("shard not released", "topic", s.id.Topic, "shard", s.id.N, "err", m.err)
			sleep(ctx, claimRetry)
		}
		s.post(m)
	})
}

// tellReleased tells the next owner, and claims again if that is this node after all. A
// claim that could not be released is in everybody's way: it is tried again.
func (s *shard) tellReleased(m *givenUp) {
	s.given--
	if m.err != nil && !errors.Is(m.err, store.ErrFenced) {
		s.left = &m.fence
		s.claim()
		return
	}
	s.log.Debug("shard given up", "topic", s.id.Topic, "shard", s.id.N)
	s.fleet.notifyOwner(s.id, Notice{Released: []store.Shard{s.id}})
	s.claim()
}

// release gives the claim up, so that the next owner need not wait.
func (s *shard) release() {
	done := s.releasing
	s.releasing = nil
	if !s.owned {
		close(done)
		return
	}
	s.owned, s.wanted = false, false
	s.metrics.owned.Dec()
	fence := s.fence
	s.calls.run(func(ctx context.Context) {
		defer close(done)
		if err := s.store.Release(ctx, s.id, fence); err != nil {
			s.log.Debug("shard not released", "topic", s.id.Topic, "shard", s.id.N, "err", err)
			return
		}
		s.fleet.notifyOwner(s.id, Notice{Released: []store.Shard{s.id}})
	})
}

// describe is the shard as its owner sees it.
func (s *shard) describe() OwnedShard {
	d := OwnedShard{Shard: s.id, Epoch: s.fence.Epoch, Wheel: s.due.Len(), Ready: len(s.out) + len(s.orders.waiting), Held: s.held.len()}
	if !s.owned {
		d.Epoch = 0
	}
	return d
}
