package storetest

import (
	"math"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

func histogramCases() []entry {
	return []entry{
		{"Histogram/CountsPendingTasksByDueTime", histogram},
		{"Histogram/SumsUpToThePendingTasks", histogramSums},
	}
}

func (f *fixture) histogram(bounds ...store.Millis) []int64 {
	f.Helper()
	_, counts, err := f.s.Histogram(f.ctx, f.shard, bounds)
	f.ok("histogram", err)
	return counts
}

func histogram(f *fixture) {
	same(f, "counts of nothing", f.histogram(1, 2), []int64{0, 0, 0})
	now := f.now()
	f.add(task("a", now-5), task("b", now), task("c", now), task("d", now+1), task("e", now.Add(long)))
	f.held("held")
	f.dead("dead")
	same(f, "counts", f.histogram(now-5, now, now+1, now+2), []int64{0, 1, 2, 1, 1})
	same(f, "counts of one bucket", f.histogram(), []int64{5})
	same(f, "counts around the ends", f.histogram(math.MinInt32, now-5, now.Add(long), now.Add(2*long)), []int64{0, 0, 4, 1, 0})
	f.edit(store.OK, store.Edit{ID: "a", Due: now.Add(3 * long)})
	same(f, "counts after a move", f.histogram(now, now+2), []int64{0, 3, 2})
}

func histogramSums(f *fixture) {
	f.everyState()
	batch := make([]*store.Task, 500)
	for i, id := range numbered(len(batch)) {
		batch[i] = task(id, store.Millis(1000+i*i))
	}
	f.add(batch...)
	bounds := make([]store.Millis, 1000)
	for i := range bounds {
		bounds[i] = store.Millis(i * 250)
	}
	total := int64(0)
	for _, n := range f.histogram(bounds...) {
		total += n
	}
	equal(f, "sum of the counts", total, f.stats().Pending)
}

func (p *pair) checkHistogram(rt *rapid.T) {
	p.both(rt, "histogram", func(s *side) (any, error) {
		_, counts, err := s.Histogram(rt.Context(), p.shard, []store.Millis{p.base.Add(-long), p.base.Add(long)})
		return counts, err
	})
}
