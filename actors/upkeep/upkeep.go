package upkeep

import (
	"context"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/store"
)

// Upkeep is what a node does now and then for the shards that it should own: it keeps up
// with other nodes and with the topics, deletes what is kept no longer, brings indexes up
// to date, and counts. It owns a few goroutines, from StartUpkeep until the node stops.
type Upkeep struct {
	node    *actors.Node
	store   choreStore
	indexer *indexer
	rhythm  rhythm

	suspected int64  // of Suspect: the last that CheckSeqs acted on
	zones     string // of OtherZones: the last that watchZones logged
	servers   uint64 // of store.Info: what FollowServers last acted on
	chores    int    // so many times

	versions map[string]int64 // of topics, see inUse
	receipts receipts

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// choreStore is the role of the store for chores.
type choreStore interface {
	store.Reader
	store.Retention
	store.Catalog
	store.Index
}

const (
	followEvery = time.Second      // see followTopics
	ChoresEvery = 15 * time.Second // see chores
)

// New returns the upkeep of a node; nothing runs before Start.
func New(node *actors.Node) *Upkeep {
	return &Upkeep{node: node, store: node.Store(), indexer: newIndexer()}
}

// Start begins the upkeep of a node that has started. The node's Stop ends it.
func (s *Upkeep) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.rhythm.base = min(seqEvery, s.loadBeat(), s.watchBeat())
	s.wg.Go(func() { s.rhythm.run(ctx) })
	s.wg.Go(func() { s.rhythm.every(ctx, followEvery, s.follow) })
	s.wg.Go(func() { s.rhythm.every(ctx, ChoresEvery, s.Chores) })
	s.wg.Go(func() { s.rhythm.every(ctx, ChoresEvery, s.node.Topics().CloseIdle) })
	s.wg.Go(func() { s.rhythm.every(ctx, clock.JumpPause, s.node.Clocks().LookForJumps) })
	s.wg.Go(func() { s.count(ctx) })
	s.wg.Go(func() { s.indexShards(ctx) })
	s.wg.Go(func() { s.beat(ctx) })
	s.wg.Go(func() { s.watchWaiters(ctx) })
	if !s.node.Membership().Alone() {
		s.wg.Go(func() { s.followFleet(ctx) })
	}
	s.node.BeforeStop(s.stop)
}

// follow keeps up with what others change.
func (s *Upkeep) follow(ctx context.Context) {
	s.FollowTopics(ctx)
	s.FollowServers(ctx)
}

func (s *Upkeep) stop() {
	s.cancel()
	s.wg.Wait()
}

// count counts cells, round by round.
func (s *Upkeep) count(ctx context.Context) {
	c := newCensus(s.node)
	goOn := func(ctx context.Context) { s.noteIncomplete(ctx, c.goOn(ctx)) }
	goOn(ctx)
	s.rhythm.every(ctx, censusEvery, goOn)
}

func (s *Upkeep) noteIncomplete(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		s.node.Metrics().CountStoreError()
		s.node.Log().Debug("housekeeping incomplete", "err", err)
	}
}

// countQueued sets the gauges of what open topics have in the store, and shows it to their
// shards.
func (s *Upkeep) countQueued(ctx context.Context) error {
	shards, refs := s.open(func(*actors.Topic, store.Shard) bool { return true })
	stats, err := s.node.StatsOf(ctx, shards)
	depths := make(depths)
	for i := range stats {
		refs[i].Seen(shards[i].N, &stats[i])
		depths.add(shards[i].Topic, &stats[i])
	}
	depths.show(s.node)
	return err
}

// depths counts tasks by topic.
type depths map[string]metrics.Depth

func (d depths) add(topic string, st *store.Stats) { d[topic] = d[topic].Plus(st) }

// show sets the gauges, but for topics that were closed meanwhile.
func (d depths) show(n *actors.Node) {
	for topic, depth := range d {
		if _, open := n.Topics().Opened(topic); open {
			n.Metrics().SetQueued(topic, depth)
		}
	}
}
