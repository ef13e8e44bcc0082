package pebblestore

import (
	"bytes"
	"context"
	"math"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// laneWindow returns pending tasks of one lane.
func (s *Store) laneWindow(number uint32, w store.WindowQuery) (entries []store.Entry, err error) {
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
func (s *Store) Lanes(ctx context.Context, name store.Shard, after *store.Lane, limit int) ([]store.LaneHead, error) {
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

// checkLane looks whether the task of a key is pending in that lane.
func (t *turn) checkLane(key []byte) (repaired bool, err error) {
	_, due, id, ok := decodeLaneKey(key)
	if !ok {
		return true, t.remove(key, true)
	}
	e, f, err := t.find(id)
	if err != nil {
		return false, err
	}
	if f == readable && e.state == pending && t.sh.holds.get(id) == nil &&
		bytes.Equal(key, appendLaneKey(nil, t.sh.number, e.traits(), due, id)) && e.due == due {
		return false, nil
	}
	return true, t.remove(key, true)
}
