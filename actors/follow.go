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
			s.Resumed() // a node that died may have died before it told
			s.broadcast(&viewChanged{})
			s.discover(ctx)
		case <-look.C:
			s.checkSeqs(ctx)
		case <-rescue.C:
			s.discover(ctx)
		}
	}
}

// checkSeqs shows the shards that are in use how far the store is: all of them
// after notices may have been lost.
func (s *System) checkSeqs(ctx context.Context) {
	since := time.Now().Add(-activeFor).UnixNano()
	all := s.fleet.suspect.Load() >= since
	if !all && s.used.Load() < since {
		return // no topic is in use
	}
	s.look(ctx, func(ref *topicRef, shard store.Shard) bool {
		return (all || ref.active.Load() >= since) && s.fleet.owns(shard)
	}, nil)
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
	found := make(depths)
	s.eachTopic(func(ref *topicRef) { found[ref.config.Load().Name] = Depth{} })
	defer func() { found.show(s.metrics) }()
	ours := func(_ *topicRef, shard store.Shard) bool { return s.fleet.owns(shard) || !s.fleet.placed(shard) }
	s.look(ctx, ours, func(ref *topicRef, shard store.Shard, st *store.Stats) {
		found.add(shard.Topic, st)
		if s.forsaken(shard, st) {
			s.tell(ref, shard.N, &placed{wanted: true})
		}
	})
}

// look shows open shards that are wanted what the store says of them, and does
// something with each besides.
func (s *System) look(ctx context.Context, wanted func(*topicRef, store.Shard) bool, also func(*topicRef, store.Shard, *store.Stats)) {
	var shards []store.Shard
	var refs []*topicRef
	s.eachTopic(func(ref *topicRef) {
		for _, shard := range shardsOf(ref.config.Load()) {
			if wanted(ref, shard) {
				shards, refs = append(shards, shard), append(refs, ref)
			}
		}
	})
	stats, err := s.statsOf(ctx, shards)
	if err != nil {
		return // the keeper and the shards notice what it is about
	}
	for i := range stats {
		st := &stats[i]
		s.tell(refs[i], shards[i].N, &seqSeen{seq: st.Seq, empty: st.Pending+st.Running == 0})
		if also != nil {
			also(refs[i], shards[i], st)
		}
	}
}

// statsPage is how many shards the store is asked about at a time.
const statsPage = 500

func (s *System) statsOf(ctx context.Context, shards []store.Shard) (all []store.Stats, err error) {
	for page := range slices.Chunk(shards, statsPage) {
		stats, err := s.store.Stats(ctx, page)
		if err != nil {
			return nil, err
		}
		all = append(all, stats...)
	}
	return all, nil
}

// forsaken reports whether a shard has tasks, and neither its owner nor the node
// that should own it is a member.
func (s *System) forsaken(shard store.Shard, st *store.Stats) bool {
	if st.Pending+st.Running == 0 || st.Owner == s.cfg.Node {
		return false
	}
	_, there := s.fleet.member(st.Owner)
	return !there && !s.fleet.placed(shard)
}

// Nodes returns the members of the fleet and how they fare; a node that stands
// alone is one.
func (s *System) Nodes(ctx context.Context) ([]NodeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, describeFor)
	defer cancel()
	nodes := s.NodesWithoutLoad()
	loads := s.describeAll(ctx, s.members())
	for i := range nodes {
		nodes[i].Load = loads[nodes[i].Name]
	}
	return nodes, nil
}

// NodesWithoutLoad is Nodes without asking any other node.
func (s *System) NodesWithoutLoad() []NodeStatus {
	members := s.members()
	nodes := make([]NodeStatus, len(members))
	for i, m := range members {
		nodes[i] = NodeStatus{Member: m, Self: m.Name == s.cfg.Node}
	}
	return nodes
}

func (s *System) members() []Member {
	if v := s.fleet.view.Load(); v != nil {
		return slices.Clone(v.Members())
	}
	return []Member{{Name: s.cfg.Node, Addr: s.cfg.Addr, State: MemberActive}}
}
