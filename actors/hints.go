package actors

import (
	"context"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

// Notified passes on what another node says. It does not wait.
func (s *Node) Notified(n fleet.Notice) {
	for _, p := range n.Pending {
		s.toShard(p.Shard, &shard.PendingElsewhere{Seq: p.Seq, Tasks: p.Tasks})
	}
	for _, e := range n.Ended {
		s.toShard(e.Shard, &shard.EndedElsewhere{Holds: e.Holds})
	}
	for _, f := range n.Freed {
		if ref, open := s.topics.Opened(f.Topic); open {
			s.rt.Send(ref.pid, &permitsFree{inTurn: f.Keys})
		}
	}
	for _, w := range n.Waiting {
		s.toShard(w.Shard, &shard.WaitedElsewhere{Ids: w.IDs, Node: w.Node, First: w.First})
	}
	for _, t := range n.Settled {
		s.rt.TellSettled(t.Shard, t.IDs...)
	}
	for _, c := range n.Cancels {
		s.toShard(c.Shard, &shard.CancelHolds{Holds: c.Holds})
	}
	for _, r := range n.Released {
		s.toShard(r, &shard.Placed{Wanted: s.rt.Fleet.Owns(r), Told: true})
	}
}

// Resumed records that another node begins to say things: what it had to say
// before may be lost.
func (s *Node) Resumed() { s.rt.Fleet.NoteLoss() }

// toShard passes a hint to a shard. A topic that is not open is opened, which makes the
// hint needless.
func (s *Node) toShard(at store.Shard, m any) {
	if !s.rt.Running.Load() || s.rt.Stopping.Load() {
		return
	}
	if ref, ok := s.topics.inUse(at.Topic); ok {
		s.rt.Use(&ref.shared.Active)
		if pid := ref.shard(at.N); pid != nil {
			s.rt.Send(pid, m)
			return
		}
		if ref.looking.CompareAndSwap(false, true) { // it may have got other shards
			s.rt.Pool.Run(func() {
				defer ref.looking.Store(false)
				ref.lookAgain()
			})
		}
		return
	}
	_, told := m.(*shard.Placed)
	s.openFor(at, told)
}

// openFor opens a topic that this node owns a shard of. Told that the store says so, it
// opens the topic in any case: the shard gives up what it should not have.
func (s *Node) openFor(at store.Shard, told bool) {
	if !told && !s.rt.Fleet.Owns(at) {
		return
	}
	s.rt.Pool.Run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shard.StoreRetry)
		defer cancel()
		ref, err := s.topics.Open(ctx, at.Topic, false) // what is not opened now is found by discover
		if told && err == nil {
			ref.tell(at.N, &shard.Placed{Wanted: s.rt.Fleet.Owns(at), Told: true})
		}
	})
}
