package pebblestore

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/pebblestore/datadir"
)

// shards are the shards that were ever used, by name.
type shards struct {
	mu     sync.RWMutex
	byName map[store.Shard]*shard // guarded by mu
	lastID uint32                 // guarded by mu: the highest number of a shard
	layout layout
}

// get returns the shard of that name. Unless create is set, one that was never
// used is not remembered: it has number 0, under which no task lies.
func (s *shards) get(name store.Shard, create bool) *shard {
	name = name.Name()
	s.mu.RLock()
	sh := s.byName[name]
	s.mu.RUnlock()
	switch {
	case sh != nil:
		return sh
	case !create:
		sh = newShard(name, 0, &s.layout)
		sh.loaded = true
		return sh
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh = s.byName[name]; sh == nil {
		s.lastID++
		sh = newShard(name, s.lastID, &s.layout)
		sh.loaded = true
		s.byName[name] = sh
	}
	return sh
}

// list returns those that are used, in no order.
func (s *shards) list() []*shard {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.byName))
}

// read reads the numbers of the shards on opening.
func (s *shards) read(d *datadir.Dir) error {
	s.byName = make(map[store.Shard]*shard)
	lower, upper := appendPrefix(nil, 0, tableShards), appendPrefix(nil, 0, tableShards+1)
	return d.Scan(lower, upper, func(key, value []byte) (bool, error) {
		name, ok := decodeShardKey(key)
		if !ok || len(value) != 4 {
			return false, fmt.Errorf("malformed number of a shard under key %x", key)
		}
		number := binary.BigEndian.Uint32(value)
		s.byName[name] = newShard(name, number, &s.layout)
		s.lastID = max(s.lastID, number)
		return true, nil
	})
}
