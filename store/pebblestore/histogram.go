package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// Histogram counts pending tasks by due time. It reads the index of all of them, and
// holds nobody up meanwhile.
func (s *taskReader) Histogram(ctx context.Context, name store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer s.dir.Leave()
	sh := s.shards.get(name, false)
	st, err := sh.numbers(s.dir)
	if err != nil || st.Pending == 0 {
		return st.Stamp, make([]int64, len(bounds)+1), err
	}
	lower, err := sh.firstPending(s.dir)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	counts, err := countByTime(ctx, s.dir, lower, appendPrefix(nil, sh.number, tablePending+1), bounds)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return st.Stamp, counts, nil
}

// countByTime counts the keys of a range, whose prefix a time follows, by that time.
func countByTime(ctx context.Context, d *datadir.Dir, lower, upper []byte, bounds []store.Millis) ([]int64, error) {
	counts, bucket, seen := make([]int64, len(bounds)+1), 0, 0
	err := d.Scan(lower, upper, func(key, _ []byte) (bool, error) {
		if seen++; seen%checkEvery == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if len(key) < prefixLen+8 {
			return true, nil
		}
		for due := millisAt(key[prefixLen:]); bucket < len(bounds) && due >= bounds[bucket]; {
			bucket++
		}
		counts[bucket]++
		return true, nil
	})
	return counts, err
}

// checkEvery is after how many keys a long walk looks whether its caller is still there.
const checkEvery = 10_000
