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
	if !s.wanted || s.claiming || s.owned || s.giving != nil || s.given > 0 || s.releasing != nil || s.keeper.err() != nil {
		return // owned, on the way, not for us, or for leaseBack to start
	}
	s.claiming = true
	session, pause := s.keeper.session(), s.claimPause()
	s.calls.run(func(ctx context.Context) {
		m := &claimed{}
		var stamp store.Stamp
		stamp, m.fence, m.err = s.store.Claim(ctx, s.id, session)
		m.seq = stamp.Seq
		switch {
		case errors.Is(m.err, store.ErrOwned):
			sleep(ctx, pause)
		case m.err != nil:
			sleep(ctx, claimRetry)
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
	s.owned, s.fence, s.refusals, s.quiet = true, m.fence, 0, false
	s.metrics.owned.Inc()
	s.seqs.restart(m.seq)
	s.send(s.parent, &shardOwned{shard: s.id.N})
	if !s.wanted { // placed elsewhere meanwhile
		s.handOver()
		return
	}
	s.window.reset()
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
	}
	s.holds.waiting = nil
	s.recovers.waiting = nil
	s.fresh = nil
	clear(s.out)
	s.due.Close()
	s.due = s.wheel.NewQueue(func(ms int64) { s.post(&slotDue{ms}) })
	s.window.reset()
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

// giveUp releases the claim that handOver ended.
func (s *shard) giveUp() {
	fence := *s.giving
	s.giving = nil
	s.given++
	s.calls.run(func(ctx context.Context) {
		s.releaseClaim(ctx, fence)
		s.post(&givenUp{})
	})
}

// releaseClaim releases a claim, again and again until the store knows: as long as
// this node lives, nobody else can have the shard.
func (s *shard) releaseClaim(ctx context.Context, fence store.Fence) {
	for {
		err := s.store.Release(ctx, s.id, fence)
		if err == nil || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrClosed) || ctx.Err() != nil {
			return
		}
		s.log.Debug("shard not released", "topic", s.id.Topic, "shard", s.id.N, "err", err)
		sleep(ctx, claimRetry)
	}
}

// tellReleased tells the next owner, and claims again if that is this node after all.
func (s *shard) tellReleased() {
	s.given--
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
	d := OwnedShard{Shard: s.id, Epoch: s.fence.Epoch, Wheel: s.due.Len(), Ready: len(s.out), Held: s.held.len()}
	if !s.owned {
		d.Epoch = 0
	}
	return d
}
