package forecasts

import (
	"context"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/forecast"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// How many cells a forecast reads, in all its shards together, and how many occurrences of
// them it names. That bounds what it costs: about as much as some thousand enqueues.
const (
	maxExpanded = 20_000  // that wake before its end: of more a sample is read
	maxSample   = 8000    // in all shards
	minSample   = 64      // of a shard
	strata      = 8       // spans of which a sample has a part each
	maxSteps    = 200_000 // occurrences in all
	minSteps    = 4       // of a schedule

	cellsOnce = 500 // that are read at a time
)

// plan is how much of a shard is read.
type plan struct {
	exact bool // all
	read  int  // cells
	steps int  // occurrences of each
}

// expand adds what the cells of a shard come to.
func (m *maker) expand(ctx context.Context, i int, p plan) error {
	x := expansion{maker: m, plan: p, shard: m.shards[i], now: m.node.Clocks().NowAt(m.shards[i].Shard), part: forecast.New(m.Range)}
	bounds := m.Bounds(-schedule.Lead)
	all := []forecast.Stratum{{To: m.To(), Read: p.read}}
	if !p.exact {
		x.part.Inexact = true
		x.part.AddWakes(m.wakes[i])
		all = forecast.Strata(bounds, m.wakes[i], strata, p.read)
	}
	for s := range all {
		if err := x.stratum(ctx, &all[s]); err != nil {
			return err
		}
	}
	m.add(x.part)
	return nil
}

// expansion is the expansion of one shard.
type expansion struct {
	*maker
	plan
	shard located
	now   store.Millis
	part  *forecast.Forecast
}

// stratum adds the cells of a stratum, or those of it that are read.
func (x *expansion) stratum(ctx context.Context, s *forecast.Stratum) error {
	var found []store.Cell
	for after := (store.Wake{At: s.From}); len(found) < s.Read; {
		_, wakes, err := x.cells.Wakes(ctx, x.shard.Shard, store.WakeQuery{After: after, To: s.To - 1, Limit: min(cellsOnce, s.Read-len(found))})
		if err != nil {
			return err
		}
		if len(wakes) == 0 {
			break
		}
		ids := make([]store.CellID, len(wakes))
		for i, w := range wakes {
			ids[i] = w.ID
		}
		cells, err := x.cells.Cells(ctx, x.shard.Shard, ids)
		if err != nil {
			return err
		}
		after, found = wakes[len(cells)-1], append(found, cells...)
	}
	weight := 1.0
	if !x.exact {
		weight = s.Weight(len(found))
	}
	for _, c := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		x.cell(ctx, c, weight)
	}
	return nil
}

// cell adds what a cell comes to. One that cannot be read makes no task.
func (x *expansion) cell(ctx context.Context, c store.Cell, weight float64) {
	if c.Version == 0 {
		return
	}
	switch c.ID.Kind() {
	case store.CellSchedule:
		if s, err := x.maker.reader.read(c); err == nil {
			x.part.Expand(&forecast.Expansion{
				Schedule: s.Schedule, Table: s.table, Excluded: s.excluded, Now: x.now, Steps: x.steps, Weight: weight,
				LaterOnly: !x.exact, Recipients: x.sizeOf(ctx, s.Schedule),
			})
		}
	case store.CellWalk:
		if w, err := audience.DecodeWalk(c.Body); err == nil {
			x.part.AddWalk(w, x.size(ctx, w.Audience), x.now, weight)
		}
	}
}

func (x *expansion) sizeOf(ctx context.Context, s *schedule.Schedule) int64 {
	if s.Audience == nil {
		return 0
	}
	return x.size(ctx, s.Audience.Name)
}

func (x *expansion) size(ctx context.Context, name string) int64 {
	n, known := x.recipientsOf(ctx, name)
	if !known {
		x.part.Inexact = true
	}
	return n
}
