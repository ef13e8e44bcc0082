package upkeep

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	seqEvery      = 500 * time.Millisecond // see checkSeqs
	discoverEvery = 15 * time.Second       // see discover
	activeFor     = 10 * time.Second       // after the last task a shard is looked after closely
)

// followFleet keeps up with the other nodes until ctx ends: who should own what,
// calls that nobody told the owner of, and shards that nobody looks after.
func (s *Upkeep) followFleet(ctx context.Context) {
	look, rescue := s.rhythm.each(seqEvery), s.rhythm.each(discoverEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.node.Membership().Changed():
			s.node.Membership().Update()
			s.watchZones()
			s.node.Peer().Resumed() // a node that died may have died before it told
			s.node.ViewChanged()
			s.Discover(ctx)
		case <-look:
			s.CheckSeqs(ctx)
		case <-rescue:
			s.Discover(ctx)
		}
	}
}

// watchZones logs when time zones of nodes begin to differ, or other nodes' do, and when they
// agree again.
func (s *Upkeep) watchZones() {
	found := fleet.FindOtherZones(s.node.Membership().View())
	text := found.String()
	switch {
	case text == s.zones:
		return
	case text != "":
		s.node.Log().Warn(fleet.ZonesDiffer, "nodes", found.Others, "others", found.Most)
	default:
		s.node.Log().Info("nodes have the same time zones again")
	}
	s.zones = text
}

// CheckSeqs shows the shards that are in use how far the store is: all of them
// after notices may have been lost. These may have been about topics that were closed.
func (s *Upkeep) CheckSeqs(ctx context.Context) {
	since := time.Now().Add(-activeFor).UnixNano()
	suspect := s.node.Membership().Suspect()
	all := suspect >= since
	if all && s.suspected != suspect && s.node.Topics().HasClosedIdle() {
		s.suspected = suspect
		s.openActive(ctx)
	}
	if !all && s.node.LastUsed() < since {
		return // no topic is in use
	}
	_ = s.look(ctx, func(ref *actors.Topic, shard store.Shard) bool {
		return (all || ref.LastUsed() >= since) && s.node.Membership().Owns(shard)
	}, nil)
}

// Discover opens topics that other nodes put tasks into, and brings shards home
// whose owner is no member any more, whoever should own them: what becomes of them
// is decided by the store.
func (s *Upkeep) Discover(ctx context.Context) {
	if s.node.Stopping() {
		return
	}
	s.openActive(ctx)
	found := make(depths)
	s.node.Topics().Each(func(ref *actors.Topic) { found[ref.Config().Name] = metrics.Depth{} })
	defer func() { found.show(s.node) }()
	ours := func(_ *actors.Topic, shard store.Shard) bool {
		return s.node.Membership().Owns(shard) || !s.node.Membership().Placed(shard)
	}
	_ = s.look(ctx, ours, func(ref *actors.Topic, shard store.Shard, st *store.Stats) {
		found.add(shard.Topic, st)
		if s.forsaken(shard, st) {
			ref.Wanted(shard.N)
		}
	})
}

func (s *Upkeep) openActive(ctx context.Context) {
	if err := s.node.Topics().OpenActive(ctx); err != nil && ctx.Err() == nil {
		s.node.Log().Debug("topics not looked through", "err", err)
	}
}

// look shows open shards that are wanted what the store says of them, and does
// something with each besides. The keeper and the shards notice what an error is about.
func (s *Upkeep) look(ctx context.Context, wanted func(*actors.Topic, store.Shard) bool, also func(*actors.Topic, store.Shard, *store.Stats)) error {
	shards, refs := s.open(wanted)
	stats, err := s.node.CountsOf(ctx, shards)
	if err != nil {
		return err
	}
	for i := range stats {
		st := &stats[i]
		refs[i].Seen(shards[i].N, st)
		if also != nil {
			also(refs[i], shards[i], st)
		}
	}
	return nil
}

// open are the shards of open topics that are wanted, and the topic of each.
func (s *Upkeep) open(wanted func(*actors.Topic, store.Shard) bool) (shards []store.Shard, refs []*actors.Topic) {
	s.node.Topics().Each(func(ref *actors.Topic) {
		for _, shard := range place.Shards(ref.Config()) {
			if wanted(ref, shard) {
				shards, refs = append(shards, shard), append(refs, ref)
			}
		}
	})
	return shards, refs
}

// forsaken reports whether a shard has tasks, and neither its owner nor the node
// that should own it is a member.
func (s *Upkeep) forsaken(shard store.Shard, st *store.Stats) bool {
	if st.Pending+st.Running+st.Cells+st.Parcels == 0 || st.Owner == s.node.Config().Node {
		return false
	}
	_, there := s.node.Membership().Member(st.Owner)
	return !there && !s.node.Membership().Placed(shard)
}
