package pebblestore

import (
	"bytes"
	"context"
	"math"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// appendLaneKey appends the key of a pending task among those of its lane: the lane,
// the due time and the id as it is. It returns nil for a task of the zero lane. traits
// are encoded.
func appendLaneKey(b []byte, number uint32, traits []byte, due store.Millis, id string) []byte {
	if len(traits) == 0 {
		return nil
	}
	lane, _, err := record.CutLane(traits)
	if err != nil || lane == (store.Lane{}) {
		return nil
	}
	return append(appendMillis(appendLane(b, number, lane), due), id...)
}

func appendLane(b []byte, number uint32, lane store.Lane) []byte {
	return record.AppendLane(appendPrefix(b, number, tableLanes), lane)
}

// decodeLaneKey reads what appendLaneKey wrote.
func decodeLaneKey(key []byte) (lane store.Lane, due store.Millis, id string, ok bool) {
	if len(key) < prefixLen {
		return lane, 0, "", false
	}
	lane, rest, err := record.CutLane(key[prefixLen:])
	if err != nil || len(rest) < 8 {
		return lane, 0, "", false
	}
	return lane, millisAt(rest), string(rest[8:]), true
}

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
	err = s.scan(lower, upper, func(key, value []byte) (bool, error) {
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
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	sh := s.shard(name, false)
	var heads []store.LaneHead
	lower := appendPrefix(nil, sh.number, tableLanes)
	if after != nil {
		lower = append(appendLane(nil, sh.number, *after), behindLane...)
	}
	for len(heads) < limit {
		found := false
		err := s.scan(lower, appendPrefix(nil, sh.number, tableLanes+1), func(key, _ []byte) (bool, error) {
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

// behindLane is what no due time and id of a lane come behind.
var behindLane = bytes.Repeat([]byte{0xff}, 9)

// checkLane looks whether the task of a key is pending in that lane.
func (w *sweep) checkLane(key []byte) (repaired bool, err error) {
	_, due, id, ok := decodeLaneKey(key)
	if !ok {
		return true, w.remove(key, true)
	}
	e, f, err := w.find(id)
	if err != nil {
		return false, err
	}
	if f == readable && e.state == pending && w.sh.holds.get(id) == nil &&
		bytes.Equal(key, appendLaneKey(nil, w.sh.number, e.traits(), due, id)) && e.due == due {
		return false, nil
	}
	return true, w.remove(key, true)
}
