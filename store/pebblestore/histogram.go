package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Histogram counts pending tasks by due time. It reads the index of all of them, and
// holds nobody up meanwhile.
func (s *taskReader) Histogram(ctx context.Context, name store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer s.dir.Leave()
	sh := s.shards.get(name, false)
	counts, bucket, seen := make([]int64, len(bounds)+1), 0, 0
	st, err := sh.numbers(s.dir)
	if err != nil || st.Pending == 0 {
		return st.Stamp, counts, err
	}
	lower, err := sh.firstPending(s.dir)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	err = s.dir.Scan(lower, appendPrefix(nil, sh.number, tablePending+1), func(key, _ []byte) (bool, error) {
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
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return st.Stamp, counts, nil
}

// checkEvery is after how many keys a long walk looks whether its caller is still there.
const checkEvery = 10_000
