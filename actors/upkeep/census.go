package upkeep

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	censusEvery = 15 * time.Second
	censusRound = 30 * time.Second // between the beginnings of two rounds, which ask for all shards
	censusPage  = 1000

	// At a time: of very many cells a round takes minutes, and costs next to nothing.
	censusCells = 10_000
	censusCalls = 200
)

// census counts the cells and parcels of the shards that this node should own, round by
// round, some cells at a time. The gauges are those of the last whole round. One goroutine
// uses it.
type census struct {
	node  *actors.Node
	cells store.Cells // nil: the store keeps none

	begun  time.Time // the round was
	left   []counted // of the round; the first is looked through
	kind   int       // of metrics.CellKinds
	cursor string
	found  metrics.Census
}

// counted is a shard, and how many of its cells are not counted.
type counted struct {
	store.Shard
	cells int64
}

func newCensus(node *actors.Node) *census { return &census{node: node, cells: node.Cells()} }

// goOn goes on with a round, or begins one.
func (c *census) goOn(ctx context.Context) error {
	if c.cells == nil {
		return nil
	}
	if len(c.left) == 0 {
		if time.Since(c.begun) < censusRound-censusEvery/2 {
			return nil
		}
		if err := c.begin(ctx); err != nil {
			return err
		}
		c.begun = time.Now()
	}
	for calls, cells := 0, 0; len(c.left) > 0 && calls < censusCalls && cells < censusCells; calls++ {
		n, err := c.page(ctx)
		if err != nil {
			c.left, c.begun = nil, time.Time{} // the next round begins anew
			return err
		}
		cells += n
	}
	if len(c.left) == 0 {
		c.node.Metrics().Schedules.Show(&c.found)
	}
	return nil
}

// begin finds the shards that have something.
func (c *census) begin(ctx context.Context) error {
	c.found, c.kind, c.cursor = metrics.NewCensus(), 0, ""
	topics, err := c.node.Store().ListTopics(ctx)
	if err != nil {
		return err
	}
	var ours []store.Shard
	for i := range topics {
		for _, shard := range place.Shards(&topics[i]) {
			if c.node.Membership().Owns(shard) {
				ours = append(ours, shard)
			}
		}
	}
	stats, err := c.node.CountsOf(ctx, ours)
	if err != nil {
		return err
	}
	var left []counted
	for i := range stats {
		if stats[i].Parcels > 0 {
			in, err := c.inParcels(ctx, ours[i], stats[i].Parcels)
			if err != nil {
				return err
			}
			c.found.In += in
			c.found.Out += stats[i].Parcels - in
		}
		if stats[i].Cells > 0 {
			left = append(left, counted{ours[i], stats[i].Cells})
		}
	}
	c.left = left
	return nil
}

// inParcels counts what is in an in-box, of as many messages as a shard has. What is on its way to other shards may
// wait for long, and be much more.
func (c *census) inParcels(ctx context.Context, s store.Shard, all int64) (n int64, err error) {
	for after := int64(0); n < all; {
		parcels, err := c.cells.Parcels(ctx, s, store.InBox, after, censusPage)
		if err != nil || len(parcels) == 0 {
			return n, err
		}
		n, after = n+int64(len(parcels)), parcels[len(parcels)-1].Number
	}
	return n, nil
}

// page counts a page of a kind, and moves on behind it: to the next shard once all that it
// has is counted.
func (c *census) page(ctx context.Context) (n int, err error) {
	shard, kind := &c.left[0], metrics.CellKinds[c.kind]
	cells, next, err := c.cells.CellPage(ctx, shard.Shard, kind.Kind, c.cursor, censusPage)
	if err != nil {
		return 0, err
	}
	shard.cells -= int64(len(cells))
	c.found.Kinds[kind.Name] += int64(len(cells))
	if kind.Kind == store.CellSchedule {
		for i := range cells {
			c.found.Schedules[metrics.ScheduleState{Topic: shard.Topic, State: stateOf(&cells[i])}]++
		}
	}
	if c.cursor = next; next == "" {
		if c.kind++; c.kind == len(metrics.CellKinds) || shard.cells <= 0 {
			c.kind, c.left = 0, c.left[1:]
		}
	}
	return len(cells), nil
}

// stateOf is the state of a schedule, as gauges call it.
func stateOf(c *store.Cell) string {
	s, err := schedule.FromCell(*c)
	switch {
	case err != nil:
		return "corrupt"
	case s.Phase == schedule.Paused:
		return "paused"
	case s.Phase == schedule.Finished:
		return "finished"
	}
	return "active"
}
