package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// Window returns pending tasks in order of due time and id. It may return what is
// not synced yet, which Hold would refuse after a crash.
func (s *taskReader) Window(ctx context.Context, name store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer s.dir.Leave()
	sh := s.shards.get(name, false)
	stamp, lower, err := s.windowStart(sh, w)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	if w.Lane != nil {
		entries, err := s.laneWindow(sh.number, w)
		return stamp, entries, err
	}
	var entries []store.Entry
	upper := afterMillis(sh.number, tablePending, w.To)
	err = s.dir.Scan(lower, upper, func(key, value []byte) (bool, error) {
		if due, id, ok := decodeTimeKey(key); ok && len(entries) < w.Limit {
			traits, err := record.DecodeTraits(value)
			if err != nil {
				s.dir.Log.Error("unreadable traits: the task is taken for one without", "task", id, "err", err)
			}
			entries = append(entries, store.Entry{ID: id, Due: due, Traits: traits})
		}
		return len(entries) < w.Limit, nil
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, entries, nil
}

// windowStart returns the key at which to begin: never before the first task that
// there is, as the deleted ones before it are costly to pass.
func (s *taskReader) windowStart(sh *shard, w store.WindowQuery) (store.Stamp, []byte, error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := sh.load(s.dir); err != nil {
		return store.Stamp{}, nil, err
	}
	stamp := sh.stamp()
	if w.Lane == nil && (w.After.ID != "" || w.After.Due != 0) && w.After.Due >= sh.firstDue {
		lower := appendTimeKey(nil, sh.number, tablePending, w.After.Due, w.After.ID)
		return stamp, append(lower, 0), nil // the next key there can be
	}
	if err := sh.advance(s.dir, w.To); err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, appendMillis(appendPrefix(nil, sh.number, tablePending), sh.firstDue), nil
}
