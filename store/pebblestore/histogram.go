package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// Histogram counts pending tasks by due time, and holds nobody up meanwhile. When it is first
// asked of a shard, and until the tasks are counted then, it reads all of them that are due
// before the last bound. After that it reads those in minutes that a bound cuts.
func (s *taskReader) Histogram(ctx context.Context, name store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	if len(bounds) > 0 {
		if stamp, counts, err := s.countedHistogram(ctx, name, bounds); err != nil || counts != nil {
			return stamp, counts, err
		}
	}
	return s.histogram(ctx, name, bounds, func(sh *shard) timeIndex {
		return timeIndex{tablePending, sh.firstDue, sh.meta.pending}
	})
}

// WakeHistogram is Histogram of cells by when they wake.
func (s cellKeeper) WakeHistogram(ctx context.Context, name store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	return s.histogram(ctx, name, bounds, func(sh *shard) timeIndex {
		return timeIndex{tableWakes, sh.firstWake, sh.meta.boxes.wakes}
	})
}

// timeIndex is an index whose keys begin with a time.
type timeIndex struct {
	table   table
	first   store.Millis // no entry is before it
	entries int64        // how many there are
}

// histogram counts the entries of an index by time. Those behind the last bound are not
// read: they are what is left.
func (s *base) histogram(ctx context.Context, name store.Shard, bounds []store.Millis, of func(*shard) timeIndex) (store.Stamp, []int64, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer s.dir.Leave()
	h, err := s.shards.get(name, false).view(s.dir, bounds, of)
	if err == nil {
		err = h.count(ctx, bounds)
	}
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return h.stamp, h.counts, nil
}

// histogram is an index at one moment, and what was counted of it so far.
type histogram struct {
	stamp   store.Stamp
	entries datadir.View // before the last bound
	counts  []int64
	left    int64 // not counted
}

// view returns an index as it is now.
func (sh *shard) view(d *datadir.Dir, bounds []store.Millis, of func(*shard) timeIndex) (*histogram, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.load(d); err != nil {
		return nil, err
	}
	x := of(sh)
	h := &histogram{stamp: sh.stamp(), counts: make([]int64, len(bounds)+1), left: x.entries}
	lower := appendPrefix(nil, sh.number, x.table)
	upper := lower
	if len(bounds) > 0 && bounds[len(bounds)-1] > x.first {
		lower, upper = appendMillis(lower, x.first), appendMillis(appendPrefix(nil, sh.number, x.table), bounds[len(bounds)-1])
	}
	var err error
	h.entries, err = d.View(lower, upper)
	return h, err
}

// count counts the entries of a histogram.
func (h *histogram) count(ctx context.Context, bounds []store.Millis) error {
	bucket, seen := 0, 0
	err := h.entries.Walk(func(key, _ []byte) (bool, error) {
		if seen++; seen%checkEvery == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if len(key) < prefixLen+8 {
			return true, nil
		}
		for at := millisAt(key[prefixLen:]); at >= bounds[bucket]; {
			bucket++
		}
		h.counts[bucket]++
		h.left--
		return true, nil
	})
	h.counts[len(bounds)] += max(h.left, 0)
	return err
}

// checkEvery is after how many keys a long walk looks whether its caller is still there.
const checkEvery = 10_000
