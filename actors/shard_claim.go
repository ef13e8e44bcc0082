package actors

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/store"
)

const (
	claimRetry = 250 * time.Millisecond // pause before claiming again after an error
	ownedRetry = 50 * time.Millisecond  // and while another node owns the shard, at first
)

// onClaim tells the claim what happened, and carries out what follows.
func (s *shard) onClaim(e agenda.ClaimEvent) {
	e.Leased = s.keeper.err() == nil
	s.stepClaim(e)
}

func (s *shard) stepClaim(e agenda.ClaimEvent) {
	was := s.claim.Owned()
	effects := s.claim.Step(e)
	switch owned := s.claim.Owned(); {
	case owned && !was:
		s.metrics.owned.Inc()
	case was && !owned:
		s.metrics.owned.Dec()
	}
	for _, effect := range effects {
		s.followClaim(effect)
	}
}

func (s *shard) followClaim(effect agenda.ClaimEffect) {
	switch effect.Do {
	case agenda.DoAsk:
		s.askClaim(effect)
	case agenda.DoCheck:
		s.checkClaim()
	case agenda.DoWarnAlone:
		s.warnAlone()
	case agenda.DoBegin:
		s.send(s.parent, &shardOwned{shard: s.id.N})
	case agenda.DoLoad:
		s.tasks.Own()
		s.tasks.Reread()
		s.load()
		s.watch()
	case agenda.DoLose:
		s.lose()
	case agenda.DoRelease:
		s.releaseClaim(effect.Fence)
	case agenda.DoTell:
		s.log.Debug("shard given up", "topic", s.id.Topic, "shard", s.id.N)
		s.tellReleased()
	case agenda.DoReleaseLast:
		s.releaseLast(effect.Fence)
	case agenda.DoEndStop:
		close(s.stopped)
		s.stopped = nil
	}
}

// flushClaim follows every message: what the claim waited for may have come.
func (s *shard) flushClaim() {
	s.stepClaim(agenda.ClaimEvent{Kind: agenda.ClaimHandled})
	if s.holds.InFlight+s.holdNews.InFlight+s.recovers.InFlight == 0 {
		s.stepClaim(agenda.ClaimEvent{Kind: agenda.ClaimCallsOver})
	}
	if s.claim.Stopping() && s.idle() {
		s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimIdle})
	}
}

// askClaim asks the store for ownership. Refused, it answers after a pause.
func (s *shard) askClaim(effect agenda.ClaimEffect) {
	session, pause := s.keeper.session(), claimRetry
	if !effect.Slow { // most are given up at once; the jitter keeps those of a dead node apart
		pause = ownedRetry/2 + time.Duration(s.random()*float64(ownedRetry))
	}
	s.calls.Run(func(ctx context.Context) {
		m := s.storeClaim(ctx, session)
		switch {
		case errors.Is(m.err, store.ErrOwned):
			if effect.Remind {
				s.remind(ctx)
			}
			sleep(ctx, pause)
		case m.err != nil:
			sleep(ctx, claimRetry)
		}
		s.done(m)
	})
}

func (s *shard) storeClaim(ctx context.Context, session store.Session) *claimed {
	stamp, fence, err := s.store.Claim(ctx, s.id, session)
	return &claimed{seq: stamp.Seq, fence: fence, err: err}
}

// remind has the node that owns the shard in the store look whether it should: after a
// failover that undid its release, or a claim whose answer was lost, it does not know
// that it does, and would for as long as it lives.
func (s *shard) remind(ctx context.Context) {
	stats, err := s.store.Counts(ctx, []store.Shard{s.id})
	if err != nil {
		return
	}
	if m, there := s.fleet.Member(stats[0].Owner); there && m.Name != s.cfg.Node {
		s.fleet.peers.Notify(m, Notice{Released: []store.Shard{s.id}})
	}
}

// checkClaim claims the shard if the store says that it is this node's.
func (s *shard) checkClaim() {
	session := s.keeper.session()
	s.calls.Run(func(ctx context.Context) {
		m := &claimed{err: store.ErrOwned}
		stats, err := s.store.Counts(ctx, []store.Shard{s.id})
		if err == nil && stats[0].Owner == s.cfg.Node {
			m = s.storeClaim(ctx, session)
		}
		s.done(m)
	})
}

func (s *shard) onClaimed(m *claimed) {
	e := agenda.ClaimEvent{Kind: agenda.ClaimGranted, Fence: m.fence}
	switch {
	case errors.Is(m.err, store.ErrSessionLost):
		s.keeper.lost(m.err)
		e.Kind = agenda.ClaimUnleased
	case errors.Is(m.err, store.ErrOwned):
		e.Kind = agenda.ClaimRefused
	case m.err != nil:
		s.noteError(m.err)
		e.Kind = agenda.ClaimFailed
	default:
		s.log.Debug("shard claimed", "topic", s.id.Topic, "shard", s.id.N, "epoch", m.fence.Epoch)
		s.failedWalks = 0
		s.seqs.Restart(m.seq)
	}
	s.onClaim(e)
}

func (s *shard) warnAlone() {
	if s.fleet.hasOthers() {
		return
	}
	s.log.Warn("shard is owned by another server on this store, and this one knows no other: its workers get nothing of it; "+
		"stop one of them, or start both with --gossip-addr and --join", "topic", s.id.Topic, "shard", s.id.N)
}

// lose drops what only an owner knows. Holds run on at their workers.
func (s *shard) lose() {
	for _, r := range s.holds.Waiting {
		s.endAssignments(r.sub, 1, r.counted)
		s.endAdmission(r.admission)
	}
	s.holds.Waiting = nil
	s.recovers.Waiting = nil
	s.tasks.Lose()
	s.send(s.parent, &shardLost{shard: s.id.N})
	for _, it := range s.holdNews.Waiting {
		s.refund(it.sub, 1)
		it.sub = nil
		s.adds.Waiting = append(s.adds.Waiting, it)
	}
	s.holdNews.Waiting = nil
	s.scheduleFlush()
}

func (s *shard) releaseClaim(fence store.Fence) {
	s.calls.Run(func(ctx context.Context) {
		m := &givenUp{fence: fence}
		if m.err = s.store.Release(ctx, s.id, fence); m.err != nil && !errors.Is(m.err, store.ErrFenced) {
			s.log.Debug("shard not released", "topic", s.id.Topic, "shard", s.id.N, "err", m.err)
			sleep(ctx, claimRetry)
		}
		s.done(m)
	})
}

// onReleased handles the end of a release, also of one that an earlier incarnation began.
func (s *shard) onReleased(m *givenUp) {
	kind := agenda.ClaimReleased
	if m.err != nil && !errors.Is(m.err, store.ErrFenced) {
		kind = agenda.ClaimReleaseFailed
	}
	s.onClaim(agenda.ClaimEvent{Kind: kind, Fence: m.fence})
}

func (s *shard) tellReleased() {
	s.fleet.NotifyOwner(s.id, Notice{Released: []store.Shard{s.id}})
}

// stopClaim has the claim released once the shard is idle, and done closed.
func (s *shard) stopClaim(done chan struct{}) {
	s.stopped = done
	s.onClaim(agenda.ClaimEvent{Kind: agenda.ClaimStop})
}

// releaseLast gives the claim up at shutdown, so that the next owner need not wait.
func (s *shard) releaseLast(fence store.Fence) {
	done := s.stopped
	s.stopped = nil
	s.tasks.Lose()
	s.calls.Run(func(ctx context.Context) {
		defer close(done)
		if err := s.store.Release(ctx, s.id, fence); err != nil {
			s.log.Debug("shard not released", "topic", s.id.Topic, "shard", s.id.N, "err", err)
			return
		}
		s.tellReleased()
	})
}

// describe is the shard as its owner sees it.
func (s *shard) describe() OwnedShard {
	d := OwnedShard{Shard: s.id, Epoch: s.claim.Fence().Epoch, Wheel: s.due.Len(), Ready: s.tasks.ReadyLen(), Held: s.held.Len()}
	if !s.claim.Owned() {
		d.Epoch = 0
	}
	return d
}
