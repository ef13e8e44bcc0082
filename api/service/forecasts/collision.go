package forecasts

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/forecast"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Collision returns the second in which most is due beyond what the topic lets through, of
// those in which the next runs of a schedule are; nil: there is none. What it costs is
// bounded: it counts in a few shards, and takes the others for the same. Hurried: nobody has
// asked for it, so it may be left out, and is when others were just before.
func (f *Forecasts) Collision(ctx context.Context, m *forecast.Meeting, hurried bool) (*forecast.Collision, *problem.Error) {
	if hurried {
		done, ok := f.pace.try()
		if !ok {
			return nil, nil
		}
		defer done()
	}
	own, e := f.ownOf(ctx, m)
	if e != nil {
		return nil, e
	}
	due := m.Due()
	if len(due) == 0 {
		return nil, nil
	}
	bounds := forecast.Seconds(due)
	counts, e := f.due(ctx, m.Topic, bounds)
	if e != nil {
		return nil, e
	}
	limit, rated := forecast.Limit(m.Topic, f.node.Config().Limits.WarnDue)
	c, found := forecast.Worst(due, bounds, counts, own, limit)
	if !found {
		return nil, nil
	}
	c.Rated = rated
	around, e := f.due(ctx, m.Topic, c.Minutes())
	if e != nil {
		return nil, e
	}
	c.Solve(m.Schedule, around)
	return &c, nil
}

// countedShards is in how many shards of a topic is counted: ids are spread evenly.
const countedShards = 16

// due counts the tasks and the next occurrences of schedules of a topic by time.
func (f *Forecasts) due(ctx context.Context, t *store.Topic, bounds []store.Millis) ([]int64, *problem.Error) {
	shards := place.Shards(t)
	some := shards
	if len(shards) > countedShards {
		some = shards[len(shards)-countedShards:]
	}
	wakes := make([]store.Millis, len(bounds))
	for i, b := range bounds {
		wakes[i] = b.Add(-schedule.Lead)
	}
	parts := make([][]int64, 2*len(some))
	e := each(ctx, len(some), func(ctx context.Context, i int) (err error) {
		if _, parts[2*i], err = f.tasks.Histogram(ctx, some[i], bounds); err != nil || f.cells == nil {
			return err
		}
		_, parts[2*i+1], err = f.cells.WakeHistogram(ctx, some[i], wakes)
		return err
	})
	counts := make([]int64, len(bounds)+1)
	for _, part := range parts {
		for i, n := range part {
			counts[i] += n
		}
	}
	for i := range counts {
		counts[i] = counts[i] * int64(len(shards)) / int64(max(1, len(some)))
	}
	return counts, e
}

// ownOf is how many tasks the schedule itself has in a second, beside those that are counted
// as others are.
func (f *Forecasts) ownOf(ctx context.Context, m *forecast.Meeting) (func(second store.Millis) int64, *problem.Error) {
	a := m.Schedule.Audience
	if a != nil && f.recipients != nil {
		n, err := f.recipients(ctx, a.Name)
		if err != nil {
			return nil, problem.FromStore(err)
		}
		window := a.Window
		if n < a.SpreadFrom {
			window = 0
		}
		grain := max(a.Grain, time.Second)
		n = n * int64(min(grain, max(window, grain))) / int64(max(window, grain))
		return func(store.Millis) int64 { return n }, nil
	}
	const second = 1000
	counted := map[store.Millis]bool{m.Wake.Add(schedule.Lead) / second: m.Wake != 0}
	for _, r := range m.Schedule.Open {
		counted[r.Due/second] = true
	}
	return func(at store.Millis) int64 {
		if counted[at/second] {
			return m.Schedule.FlowTasks() - 1
		}
		return m.Schedule.FlowTasks()
	}, nil
}
