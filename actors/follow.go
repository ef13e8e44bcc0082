package actors

import (
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	seqEvery      = 500 * time.Millisecond // see checkSeqs
	discoverEvery = 15 * time.Second       // see discover
	activeFor     = 10 * time.Second       // after the last task a shard is looked after closely
)

// followFleet keeps up with the other nodes until ctx ends: who should own what,
// calls that nobody told the owner of, and shards that nobody looks after.
func (s *System) followFleet(ctx context.Context) {
	look, rescue := time.NewTicker(seqEvery), time.NewTicker(discoverEvery)
	defer look.Stop()
	defer rescue.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.fleet.source.Changed():
			s.fleet.update()
			s.broadcast(&viewChanged{})
			s.discover(ctx)
		case <-look.C:
			s.checkSeqs(ctx)
		case <-rescue.C:
			s.discover(ctx)
		}
	}
}

// checkSeqs shows the shards that are in use how far the store is.
func (s *System) checkSeqs(ctx context.Context) {
	var shards []store.Shard
	var refs []*topicRef
	since := time.Now().Add(-activeFor).UnixNano()
	s.eachTopic(func(ref *topicRef) {
		if ref.active.Load() < since {
			return
		}
		for _, shard := range shardsOf(ref.config.Load()) {
			if s.fleet.owns(shard) {
				shards, refs = append(shards, shard), append(refs, ref)
			}
		}
	})
	if len(shards) == 0 {
		return
	}
	stats, err := s.store.Stats(ctx, shards)
	if err != nil {
		return // the keeper and the shards notice what it is about
	}
	for i, st := range stats {
		s.send(refs[i].shards[shards[i].N], &seqSeen{seq: st.Seq})
	}
}

// discover opens topics that other nodes put tasks into, and brings shards home
// whose owner is no member any more, whoever should own them: what becomes of them
// is decided by the store.
func (s *System) discover(ctx context.Context) {
	if s.stopping.Load() {
		return
	}
	if err := s.openActive(ctx); err != nil && ctx.Err() == nil {
		s.log.Debug("topics not looked through", "err", err)
	}
	s.eachTopic(func(ref *topicRef) {
		t := ref.config.Load()
		stats, err := s.store.Stats(ctx, shardsOf(t))
		if err != nil {
			return
		}
		for n, st := range stats {
			if st.Pending+st.Running > 0 {
				ref.active.Store(time.Now().UnixNano())
			}
			s.send(ref.shards[n], &seqSeen{seq: st.Seq})
			if s.forsaken(store.Shard{Topic: t.Name, N: n}, &st) {
				s.send(ref.shards[n], &placed{wanted: true})
			}
		}
	})
}

// forsaken reports whether a shard has tasks, and neither its owner nor the node
// that should own it is a member.
func (s *System) forsaken(shard store.Shard, st *store.Stats) bool {
	if st.Pending+st.Running == 0 || st.Owner == s.cfg.Node {
		return false
	}
	if _, there := s.fleet.member(st.Owner); there {
		return false
	}
	_, there := s.fleet.member(s.fleet.view.Load().Owner(shard))
	return !there
}

// Nodes returns the members of the fleet and how they fare; a node that stands
// alone is one.
func (s *System) Nodes(ctx context.Context) ([]NodeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, describeFor)
	defer cancel()
	members := s.members()
	nodes := make([]NodeStatus, len(members))
	loads := s.describeAll(ctx, members)
	for i, m := range members {
		nodes[i] = NodeStatus{Member: m, Self: m.Name == s.cfg.Node, Load: loads[m.Name]}
	}
	return nodes, nil
}

func (s *System) members() []Member {
	if v := s.fleet.view.Load(); v != nil {
		return slices.Clone(v.Members())
	}
	return []Member{{Name: s.cfg.Node, Addr: s.cfg.Addr, State: MemberActive}}
}
