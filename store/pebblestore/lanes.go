package pebblestore

import (
	"bytes"
	"context"
	"math"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// laneWindow returns pending tasks of one lane.
func (s *taskReader) laneWindow(number uint32, w store.WindowQuery) (entries []store.Entry, err error) {
	lane := appendLane(nil, number, *w.Lane)
	lower, upper := lane, appendMillis(bytes.Clone(lane), math.MaxInt64)
	if w.To < math.MaxInt64 {
		upper = appendMillis(bytes.Clone(lane), w.To+1)
	}
	if w.After.ID != "" || w.After.Due != 0 {
		lower = append(append(appendMillis(bytes.Clone(lane), w.After.Due), w.After.ID...), 0)
	}
	err = s.dir.Scan(lower, upper, func(key, value []byte) (bool, error) {
		_, due, id, ok := decodeLaneKey(key)
		traits, err := record.DecodeTraits(value)
		if ok && err == nil && traits != nil { // Sweep removes the others
			entries = append(entries, store.Entry{ID: id, Due: due, Traits: traits})
		}
		return len(entries) < w.Limit, nil
	})
	return entries, err
}

// Lanes returns the lanes that have pending tasks, in the order of their keys.
func (s *taskReader) Lanes(ctx context.Context, name store.Shard, after *store.Lane, limit int) ([]store.LaneHead, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.dir.Leave()
	sh := s.shards.get(name, false)
	var heads []store.LaneHead
	lower := appendPrefix(nil, sh.number, tableLanes)
	if after != nil {
		lower = append(appendLane(nil, sh.number, *after), behindLane...)
	}
	for len(heads) < limit {
		found := false
		err := s.dir.Scan(lower, appendPrefix(nil, sh.number, tableLanes+1), func(key, _ []byte) (bool, error) {
			lane, due, _, ok := decodeLaneKey(key)
			if ok {
				heads = append(heads, store.LaneHead{Lane: lane, Due: due})
				lower = append(appendLane(nil, sh.number, lane), behindLane...)
				found = true
			}
			return !ok, nil
		})
		if err != nil || !found {
			return heads, err
		}
	}
	return heads, nil
}

// InOrder returns the first unfinished tasks of ordering keys.
func (s *taskReader) InOrder(ctx context.Context, name store.Shard, keys []string, limit int) (store.Stamp, [][]store.Ordered, error) {
	found := make([][]store.Ordered, len(keys))
	stamp, err := s.change(ctx, name, access{}, func(t *transaction) error {
		for i, key := range keys {
			if limit <= 0 {
				break
			}
			if err := t.line.each(key, func(o *store.Ordered) bool {
				found[i] = append(found[i], *o)
				return len(found[i]) < limit
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, found, nil
}
