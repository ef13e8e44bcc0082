package pebblestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
)

// shard is what is kept in memory of a shard: numbers, holds, and where its
// indexes begin. Its tasks are in the database only.
type shard struct {
	name   store.Shard
	number uint32 // of its keys

	// unsynced counts the calls whose changes can be read and are not synced yet.
	unsynced atomic.Int64

	mu     sync.Mutex // held while a call validates and applies its changes
	loaded bool       // guarded by mu, as is all below
	known  bool       // number is stored
	meta   meta
	owner  owner
	life   store.ShardLife
	holds  holds
	index  store.IndexState // a walk does not outlive the process

	doubtful bool // a sweep repaired an index: meta is to be counted again

	// No pending task is due before firstDue, and no done task is to be trimmed
	// before firstTrim. Reads begin there and not at the deleted keys before it.
	firstDue  store.Millis
	firstTrim store.Millis
}

func newShard(name store.Shard, number uint32) *shard {
	return &shard{name: name, number: number, holds: newHolds(), firstDue: math.MinInt64, firstTrim: math.MinInt64}
}

// shard returns the shard of that name. Unless create is set, one that was never
// used is not remembered: it has number 0, under which no task lies.
func (s *Store) shard(name store.Shard, create bool) *shard {
	name = name.Name()
	s.mu.RLock()
	sh := s.shards[name]
	s.mu.RUnlock()
	switch {
	case sh != nil:
		return sh
	case !create:
		sh = newShard(name, 0)
		sh.loaded = true
		return sh
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sh = s.shards[name]; sh == nil {
		s.lastID++
		sh = newShard(name, s.lastID)
		sh.loaded = true
		s.shards[name] = sh
	}
	return sh
}

// load reads what is kept in memory of a shard. It reads as many entries as there
// are holds. Called under mu.
func (sh *shard) load(s *Store) error {
	if sh.loaded {
		return nil
	}
	sh.known = true
	if err := s.read(appendPrefix(nil, sh.number, tableMeta), func(b []byte) (err error) {
		sh.meta, err = decodeMeta(b)
		return err
	}); err != nil {
		return err
	}
	if err := s.read(appendPrefix(nil, sh.number, tableOwner), func(b []byte) (err error) {
		sh.owner, err = decodeOwner(b)
		return err
	}); err != nil {
		return err
	}
	if err := sh.loadLife(s); err != nil {
		return err
	}
	if err := sh.loadIndex(s); err != nil {
		return err
	}
	held, err := s.readHolds(sh.number)
	if err != nil {
		return err
	}
	sh.holds = held
	sh.loaded = true
	return nil
}

// read calls f with the value of a key, if there is one.
func (s *Store) read(key []byte, f func([]byte) error) error {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return s.readError(err)
	}
	defer closer.Close() //nolint:errcheck // it reads nothing
	if err := f(value); err != nil {
		return s.readError(err)
	}
	return nil
}

// scan calls f for the keys from lower up to upper while it returns true. Key and
// value are valid during the call only.
func (s *Store) scan(lower, upper []byte, f func(key, value []byte) (bool, error)) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return s.readError(err)
	}
	defer func() {
		if closeErr := it.Close(); err == nil && closeErr != nil {
			err = s.readError(closeErr)
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return s.readError(err)
		}
		if more, err := f(it.Key(), value); err != nil || !more {
			return err
		}
	}
	return nil
}

// readCatalog reads the layout's version and the shards' numbers on opening.
func (s *Store) readCatalog() error {
	if err := s.checkFormat(); err != nil {
		return err
	}
	lower, upper := appendPrefix(nil, 0, tableShards), appendPrefix(nil, 0, tableShards+1)
	return s.scan(lower, upper, func(key, value []byte) (bool, error) {
		name, ok := decodeShardKey(key)
		if !ok || len(value) != 4 {
			return false, fmt.Errorf("malformed number of a shard under key %x", key)
		}
		number := binary.BigEndian.Uint32(value)
		s.shards[name] = newShard(name, number)
		s.lastID = max(s.lastID, number)
		return true, nil
	})
}

const formatVersion = 1

func (s *Store) checkFormat() error {
	key := appendPrefix(nil, 0, tableFormat)
	var found []byte
	if err := s.read(key, func(b []byte) error { found = append(found, b...); return nil }); err != nil {
		return err
	}
	switch {
	case found == nil:
		if err := s.db.Set(key, []byte{formatVersion}, pebble.Sync); err != nil {
			return err
		}
		return s.disk.failure()
	case len(found) != 1 || found[0] != formatVersion:
		return fmt.Errorf("its layout has version %d, and this program knows version %d", found, formatVersion)
	}
	return nil
}
