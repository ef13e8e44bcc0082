package actors

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
)

// becamePending takes in that one store call of this node made tasks pending: the
// owner puts them into the wheel, another node tells the owner.
func (s *shard) becamePending(seq int64, tasks []store.Entry) {
	if s.fleet.hasOthers() {
		s.wakeUp()
		s.seqs.heard(seq)
		if !s.owned {
			s.tellPending(seq, tasks)
		}
	}
	for _, t := range tasks {
		s.learn(t)
	}
}

// tellPending tells the owner of tasks that are due within its horizon. The notice
// goes out without any, too: its seq counts.
func (s *shard) tellPending(seq int64, tasks []store.Entry) {
	soon, limit := make([]store.Entry, 0, len(tasks)), s.now().Add(s.cfg.Horizon)
	for _, t := range tasks {
		if t.Due <= limit {
			soon = append(soon, t)
		}
	}
	s.fleet.notifyOwner(s.id, Notice{Pending: []PendingNotice{{Shard: s.id, Seq: seq, Tasks: soon}}})
}

// tellEnded tells the owner of holds that this node ended.
func (s *shard) tellEnded(holds []EndedHold) {
	if !s.owned && len(holds) > 0 && s.fleet.hasOthers() {
		s.fleet.notifyOwner(s.id, Notice{Ended: []EndedNotice{{Shard: s.id, Holds: holds}}})
	}
}

// learnNotice takes in what another node says became pending.
func (s *shard) learnNotice(m *pendingElsewhere) {
	if !s.owned {
		return // whoever owns it finds the gap, or loads it with the claim
	}
	s.wakeUp()
	s.seqs.heard(m.seq)
	for _, t := range m.tasks {
		s.learn(t)
	}
}

// checkSeq compares what was heard with the store. After a gap that stayed the
// window is read again: a notice was lost.
func (s *shard) checkSeq(m *seqSeen) {
	if !s.owned {
		return
	}
	missed := s.seqs.missed(m.seq)
	if s.seqs.known != m.seq {
		s.use(s.ref) // look again soon
	}
	if missed {
		s.metrics.missedNotices.Inc()
		s.seqs.restart(m.seq)
		s.wakeUp()
		s.reread()
		s.load()
		return
	}
	if !m.empty || s.seqs.known != m.seq || !s.idle() || s.held.len() > 0 {
		s.wakeUp()
		return
	}
	s.quiet = true
	s.dropHints()
}

// dropHints forgets tasks that are gone from the store: others may delete what this
// node has in its wheel.
func (s *shard) dropHints() {
	if s.due.Len()+len(s.out)+len(s.orders.byKey) == 0 {
		return
	}
	s.forgetPending()
	s.send(s.parent, &readyGone{shard: s.id.N})
}

// wakeUp ends the quiet: the window is behind by as long as it lasted.
func (s *shard) wakeUp() {
	if s.quiet {
		s.quiet = false
		s.load()
	}
}

// takeOver registers holds that another node took for a subscription of this one,
// and passes them on to its worker. Those of which half went by on the way go back,
// as from a stream that is too slow.
func (s *shard) takeOver(m *heldElsewhere) {
	now := s.now()
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
		s.held.add(&hold{id: d.Task.ID, sub: m.sub, token: token, deadline: h.deadline, lasts: d.HoldFor, foreign: true})
		s.putOut(m.sub, h)
	}
	if len(late) > 0 {
		s.refund(m.sub, len(late))
		s.giveBack(late)
	}
}

// Notified takes in what another node says. It does not wait.
func (s *System) Notified(n Notice) {
	for _, p := range n.Pending {
		s.toShard(p.Shard, &pendingElsewhere{seq: p.Seq, tasks: p.Tasks})
	}
	for _, e := range n.Ended {
		s.toShard(e.Shard, &endedElsewhere{holds: e.Holds})
	}
	for _, f := range n.Freed {
		if ref, open := s.topics.Load(f.Topic); open {
			s.send(ref.(*topicRef).pid, &permitsFree{inTurn: f.Keys})
		}
	}
	for _, w := range n.Waiting {
		s.toShard(w.Shard, &waitedElsewhere{ids: w.IDs, node: w.Node, first: w.First})
	}
	for _, t := range n.Settled {
		s.tellSettled(t.Shard, t.IDs...)
	}
	for _, c := range n.Cancels {
		s.toShard(c.Shard, &cancelHolds{holds: c.Holds})
	}
	for _, r := range n.Released {
		s.toShard(r, &placed{wanted: s.fleet.owns(r), told: true})
	}
}

// Resumed takes in that another node begins to say things: what it had to say
// before may be lost.
func (s *System) Resumed() { s.fleet.suspect.Store(time.Now().UnixNano()) }

// toShard passes a hint to a shard. A topic that is not open yet is opened, which
// makes the hint needless.
func (s *System) toShard(at store.Shard, m any) {
	if !s.running.Load() || s.stopping.Load() {
		return
	}
	if ref, ok := s.topics.Load(at.Topic); ok {
		ref := ref.(*topicRef)
		s.use(ref)
		if pid := ref.shard(at.N); pid != nil {
			s.send(pid, m)
			return
		}
		if ref.looking.CompareAndSwap(false, true) { // it may have got other shards
			s.pool.run(func() {
				defer ref.looking.Store(false)
				s.lookAgain(ref)
			})
		}
		return
	}
	s.openFor(at)
}

// lookAgain takes in what became of a topic.
func (rt *runtime) lookAgain(ref *topicRef) {
	ctx, cancel := context.WithTimeout(context.Background(), storeRetry)
	defer cancel()
	if topic := ref.config.Load().Name; rt.refresh(ctx, topic) != nil {
		rt.log.Debug("topic not read again", "topic", topic)
	}
}

// openFor opens a topic that this node owns a shard of.
func (s *System) openFor(at store.Shard) {
	if s.fleet.owns(at) {
		s.pool.run(func() {
			ctx, cancel := context.WithTimeout(context.Background(), storeRetry)
			defer cancel()
			_, _ = s.topic(ctx, at.Topic, false) // what is not opened now is found by discover
		})
	}
}
