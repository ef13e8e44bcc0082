package storetest

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

func histogramCases() []entry {
	return []entry{
		{"Histogram/CountsPendingTasksByDueTime", histogram},
		{"Histogram/SumsUpToThePendingTasks", histogramSums},
		{"Histogram/EqualsAWalkAfterRandomChanges", histogramWalk},
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

func histogramWalk(f *fixture) {
	random, ids := rand.New(rand.NewPCG(1, 2)), numbered(200)
	moment := func() store.Millis { // from an hour ago until some days ahead, at the start of a minute as often as not
		at := f.now().Add(time.Duration(random.Int64N(int64(100*long))) - long)
		return at - at%[]store.Millis{1, 60_000, 3_600_000}[random.IntN(3)]
	}
	some := func() []string {
		random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		return ids[:1+random.IntN(30)]
	}
	for range 40 {
		var batch []*store.Task
		var edits []store.Edit
		for _, id := range some() {
			batch = append(batch, task(id, moment()))
			edits = append(edits, store.Edit{ID: id, Due: moment()})
		}
		_, _, err := f.s.Add(f.ctx, f.shard, batch)
		f.ok("add", err)
		holds := holdsOf(long, some()...)
		_, _, err = f.s.Hold(f.ctx, f.shard, f.fence, holds)
		f.ok("hold", err)
		for _, h := range holds[:len(holds)/2] {
			_, _, err = f.s.Nack(f.ctx, f.shard, []store.Nack{{ID: h.ID, Token: h.Token, Delay: time.Duration(random.Int64N(int64(long)))}})
			f.ok("nack", err)
		}
		_, _, err = f.s.Edit(f.ctx, f.shard, edits[:len(edits)/2])
		f.ok("edit", err)
		_, _, err = f.s.Remove(f.ctx, f.shard, store.Removals(some()...))
		f.ok("remove", err)
		bounds := []store.Millis{moment(), moment(), moment(), moment()}
		slices.Sort(bounds)
		bounds = slices.Compact(bounds)
		same(f, "counts", f.histogram(bounds...), f.walked(bounds))
	}
}

// walked is a histogram of what Window returns.
func (f *fixture) walked(bounds []store.Millis) []int64 {
	f.Helper()
	counts := make([]int64, len(bounds)+1)
	_, entries, err := f.s.Window(f.ctx, f.shard, store.WindowQuery{To: store.MaxDue, Limit: 1000})
	f.ok("window", err)
	for _, e := range entries {
		bucket := 0
		for bucket < len(bounds) && e.Due >= bounds[bucket] {
			bucket++
		}
		counts[bucket]++
	}
	return counts
}

func (p *pair) checkHistogram(rt *rapid.T) {
	p.both(rt, "histogram", func(s *side) (any, error) {
		_, counts, err := s.Histogram(rt.Context(), p.shard, []store.Millis{p.base.Add(-long), p.base.Add(long)})
		return counts, err
	})
}
