package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// maxReady is up to where Stats counts the ready tasks of a shard.
const maxReady = 100_000

// Stats returns counts and ownership of shards. Ready is counted up to 100,000.
func (s *taskReader) Stats(ctx context.Context, names []store.Shard) ([]store.Stats, error) {
	return s.eachNumbers(ctx, names, s.stats)
}

// Counts is Stats without Ready and OldestMs: all but whether there are keys is in
// memory.
func (s *taskReader) Counts(ctx context.Context, names []store.Shard) ([]store.Stats, error) {
	return s.eachNumbers(ctx, names, s.counts)
}

// eachNumbers asks for the numbers of each shard.
func (s *taskReader) eachNumbers(ctx context.Context, names []store.Shard, of func(*shard) (store.Stats, error)) ([]store.Stats, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.dir.Leave()
	stats := make([]store.Stats, len(names))
	for i, name := range names {
		var err error
		if stats[i], err = of(s.shards.get(name, false)); err != nil {
			return nil, err
		}
	}
	return stats, nil
}

func (s *taskReader) stats(sh *shard) (store.Stats, error) {
	st, err := s.counts(sh)
	if err != nil || st.Pending == 0 {
		return st, err
	}
	lower, err := sh.firstPending(s.dir)
	if err != nil {
		return st, err
	}
	now := store.Millis(st.Now.UnixMilli())
	err = s.dir.Scan(lower, appendPrefix(nil, sh.number, tablePending+1), func(key, _ []byte) (bool, error) {
		due := millisAt(key[prefixLen:])
		if st.OldestMs == 0 {
			st.OldestMs = due
		}
		if due > now || st.Ready == maxReady {
			return false, nil
		}
		st.Ready++
		return true, nil
	})
	return st, err
}

func (s *taskReader) counts(sh *shard) (store.Stats, error) {
	st, err := sh.numbers(s.dir)
	if err == nil {
		st.Keys, err = s.hasKeys(sh)
	}
	return st, err
}
