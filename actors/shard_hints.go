package actors

import (
	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/store"
)

// becamePending records that one store call of this node made tasks pending: the
// owner puts them into the wheel, another node tells the owner.
func (s *shard) becamePending(seq int64, tasks []store.Entry) {
	if s.fleet.hasOthers() {
		s.wakeUp()
		s.seqs.Heard(seq)
		if !s.claim.Owned() {
			s.tellPending(seq, tasks)
		}
	}
	s.tasks.Pending(s.now(), tasks...)
}

// tellPending tells the owner of tasks that are due within its horizon, which may be
// greater than the one here, and by its clock. The notice goes out without any, too: its
// seq counts.
func (s *shard) tellPending(seq int64, tasks []store.Entry) {
	soon, limit := make([]store.Entry, 0, len(tasks)), s.now().Add(MaxHorizon+watchSlack)
	for _, t := range tasks {
		if t.Due <= limit {
			soon = append(soon, t)
		}
	}
	s.fleet.NotifyOwner(s.id, Notice{Pending: []PendingNotice{{Shard: s.id, Seq: seq, Tasks: soon}}})
}

// tellEnded tells the owner of holds that this node ended.
func (s *shard) tellEnded(holds []EndedHold) {
	if !s.claim.Owned() && len(holds) > 0 && s.fleet.hasOthers() {
		s.fleet.NotifyOwner(s.id, Notice{Ended: []EndedNotice{{Shard: s.id, Holds: holds}}})
	}
}

// learnNotice records what another node says became pending.
func (s *shard) learnNotice(m *pendingElsewhere) {
	if !s.claim.Owned() {
		return // whoever owns it finds the gap, or loads it with the claim
	}
	s.wakeUp()
	s.seqs.Heard(m.seq)
	s.tasks.Pending(s.now(), m.tasks...)
}

// checkSeq compares what was heard with the store. After a gap that stayed the
// window is read again: a notice was lost.
func (s *shard) checkSeq(m *seqSeen) {
	if !s.claim.Owned() {
		return
	}
	missed := s.seqs.Missed(m.seq)
	if s.seqs.Known != m.seq {
		s.use(s.ref) // look again soon
	}
	if missed {
		s.metrics.missedNotices.Inc()
		s.seqs.Restart(m.seq)
		s.wakeUp()
		s.tasks.Reread()
		s.load()
		return
	}
	if !m.empty || s.seqs.Known != m.seq || !s.idle() || s.held.Len() > 0 {
		s.wakeUp()
		return
	}
	s.claim.Quiet = true
	s.dropHints()
}

// dropHints forgets tasks that are gone from the store: others may delete what this
// node has in its wheel.
func (s *shard) dropHints() {
	if s.tasks.Empty() {
		return
	}
	s.tasks.Forget()
	s.send(s.parent, &readyGone{shard: s.id.N})
}

// wakeUp ends the quiet: the window is behind by as long as it lasted.
func (s *shard) wakeUp() {
	if s.claim.Quiet {
		s.claim.Quiet = false
		s.load()
	}
}

// takeOver registers holds that another node took for a subscription of this one,
// and passes them on to its worker. Those of which half went by on the way go back,
// as from a stream that is too slow.
func (s *shard) takeOver(m *heldElsewhere) {
	now := s.now()
	s.assigned[m.sub.id] += len(m.tasks)
	var late []heldTask
	for _, d := range m.tasks {
		_, token, _ := decodeToken(d.Token)
		h := heldTask{task: d.Task, token: token, deadline: now.Add(d.HoldFor)}
		if d.Deadline != 0 && d.Deadline < h.deadline {
			h.deadline = d.Deadline
		}
		if h.deadline.Sub(now) < d.HoldFor/2 {
			late = append(late, h)
			continue
		}
		s.register(&agenda.Hold{ID: d.Task.ID, Sub: m.sub, Token: token, Deadline: h.deadline, Lasts: d.HoldFor, Foreign: true})
		m.sub.budget.Landed(1)
		s.putOut(m.sub, h)
	}
	if len(late) > 0 {
		s.refund(m.sub, len(late))
		m.sub.budget.discard(late)
		s.giveBack(late)
	}
}
