package pebblestore

import (
	"cmp"
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// countedHistogram is Histogram by the counts of a shard; nil when there are none yet.
func (s *base) countedHistogram(ctx context.Context, name store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer s.dir.Leave()
	sh := s.shards.get(name, false)
	h, asked, err := sh.dueHistogram(s.dir, bounds)
	if !asked {
		s.walker.ask(sh)
	}
	if err != nil || h == nil {
		return store.Stamp{}, nil, err
	}
	defer h.snapshot.Close()
	if err := h.readCut(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	return h.stamp, h.counts, nil
}

// dueHistogram is a histogram of the pending tasks at one moment.
type dueHistogram struct {
	stamp    store.Stamp
	number   uint32 // of the shard
	snapshot datadir.Snapshot
	bounds   []store.Millis
	counts   []int64   // the first has what none of the others has
	cut      []dueSpan // what a bound cuts: its tasks are not counted yet
}

// dueSpan is from a first up to a last moment.
type dueSpan struct{ first, last store.Millis }

// dueHistogram begins a histogram. It is nil when the counts are not complete, and asked says
// whether somebody has begun to make them.
func (sh *shard) dueHistogram(d *datadir.Dir, bounds []store.Millis) (h *dueHistogram, asked bool, err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.load(d); err != nil {
		return nil, true, err
	}
	if sh.due == nil || !sh.due.complete {
		return nil, sh.due != nil, nil
	}
	h = &dueHistogram{stamp: sh.stamp(), number: sh.number, snapshot: d.Snapshot(), bounds: bounds, counts: make([]int64, len(bounds)+1)}
	h.counts[0] = sh.meta.pending
	sh.due.asked = store.Millis(h.stamp.Now.UnixMilli())
	for hour, c := range sh.due.hours {
		h.addHour(hour, c)
	}
	return h, true, nil
}

// bucket is the place of a moment among the counts.
func (h *dueHistogram) bucket(at store.Millis) int {
	i, equal := slices.BinarySearch(h.bounds, at)
	if equal {
		i++
	}
	return i
}

// whole adds tasks of a span, unless a bound cuts it.
func (h *dueHistogram) whole(first, last store.Millis, tasks int64) bool {
	i := h.bucket(first)
	if i != h.bucket(last) {
		return false
	}
	h.add(i, tasks)
	return true
}

func (h *dueHistogram) add(i int, tasks int64) {
	if i > 0 {
		h.counts[i] += tasks
		h.counts[0] -= tasks
	}
}

func (h *dueHistogram) addHour(hour int64, c *dueHour) {
	first, last := hourSpan(hour)
	if h.whole(first, last, c.tasks) {
		return
	}
	if c.minutes == nil {
		h.cut = append(h.cut, dueSpan{first, last})
		return
	}
	for i, n := range c.minutes {
		if n == 0 {
			continue
		}
		if first, last := minuteSpan(hour*hourMinutes+int64(i), 1); !h.whole(first, last, int64(n)) {
			h.cut = append(h.cut, dueSpan{first, last})
		}
	}
}

// readCut reads the tasks of what bounds cut.
func (h *dueHistogram) readCut(ctx context.Context) error {
	slices.SortFunc(h.cut, func(a, b dueSpan) int { return cmp.Compare(a.first, b.first) })
	seen := 0
	for _, s := range h.cut {
		lower := appendMillis(appendPrefix(nil, h.number, tablePending), s.first)
		err := h.snapshot.Scan(lower, afterMillis(h.number, tablePending, s.last), func(key, _ []byte) (bool, error) {
			if seen++; seen%checkEvery == 0 && ctx.Err() != nil {
				return false, ctx.Err()
			}
			if len(key) >= prefixLen+8 { // Sweep removes others
				h.add(h.bucket(millisAt(key[prefixLen:])), 1)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	h.counts[0] = max(h.counts[0], 0)
	return nil
}
