package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ddq-io/ddq/store"
)

// registry keeps records that belong to no topic. A record's key is the length of its kind,
// its kind and its name; the key without a kind has the number of changes so far.
type registry struct {
	*base
	mu    sync.Mutex     // one change at a time
	count map[string]int // records by kind, of those that were counted; guarded by mu
}

var errBadRegistry = errors.New("a record of the registry cannot be read")

func registryKey(kind, name string) []byte {
	return append(registryPrefix(kind), name...)
}

func registryPrefix(kind string) []byte {
	b := append(appendPrefix(nil, 0, tableRegistry), byte(len(kind)))
	return append(b, kind...)
}

// after returns the least key that is behind those that begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	end[len(end)-1]++ // a kind ends in a letter, or in its length, which is small
	return end
}

// number reads a counter or the version of a record; 0 when there is none.
func (s *registry) number(key []byte) (n int64, err error) {
	return n, s.dir.Read(key, func(value []byte) error {
		if len(value) < 8 {
			return errBadRegistry
		}
		n = int64(binary.BigEndian.Uint64(value))
		return nil
	})
}

// change writes what set does to a record that has a version, and counts it.
func (s *registry) change(ctx context.Context, kind, name string, version int64, set func(b *pebble.Batch, key []byte, now int64) error) (int64, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return 0, err
	}
	defer s.dir.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	key, counter := registryKey(kind, name), registryKey("", "")
	current, err := s.number(key)
	if err != nil {
		return 0, err
	}
	if current != version {
		return 0, store.ErrVersion
	}
	changes, err := s.number(counter)
	if err != nil {
		return 0, err
	}
	changes++
	b := s.dir.DB().NewBatch()
	defer func() { _ = b.Close() }()
	if err := errors.Join(set(b, key, changes), b.Set(counter, binary.BigEndian.AppendUint64(nil, uint64(changes)), nil)); err != nil {
		return 0, err
	}
	return changes, s.dir.Commit(b)
}

// PutRecord implements store.Registry.
func (s *registry) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	return s.change(ctx, r.Kind, r.Name, r.Version, func(b *pebble.Batch, key []byte, now int64) error {
		if r.Version == 0 {
			if err := s.room(r.Kind); err != nil {
				return err
			}
		}
		return b.Set(key, append(binary.BigEndian.AppendUint64(nil, uint64(now)), r.Value...), nil)
	})
}

// room counts one record more of a kind, and refuses one too many. Those that were deleted
// are counted until it is full: then, and at first, it looks.
func (s *registry) room(kind string) error {
	if n, counted := s.count[kind]; !counted || n >= store.MaxRecords {
		prefix := registryPrefix(kind)
		s.count[kind] = 0
		if err := s.dir.Scan(prefix, after(prefix), func(_, _ []byte) (bool, error) { s.count[kind]++; return true, nil }); err != nil {
			delete(s.count, kind)
			return err
		}
	}
	if s.count[kind] >= store.MaxRecords {
		return store.ErrRegistryFull
	}
	s.count[kind]++
	return nil
}

// DeleteRecord implements store.Registry.
func (s *registry) DeleteRecord(ctx context.Context, kind, name string, version int64) error {
	if version == 0 {
		return store.ErrVersion
	}
	_, err := s.change(ctx, kind, name, version, func(b *pebble.Batch, key []byte, _ int64) error { return b.Delete(key, nil) })
	return err
}

// Records implements store.Registry.
func (s *registry) Records(ctx context.Context, kind string) (all []store.Record, change int64, err error) {
	if err := s.dir.Enter(ctx); err != nil {
		return nil, 0, err
	}
	defer s.dir.Leave()
	s.mu.Lock() // what a change under way has written is not synced yet
	defer s.mu.Unlock()
	prefix := registryPrefix(kind)
	err = s.dir.Scan(prefix, after(prefix), func(key, value []byte) (bool, error) {
		if len(value) < 8 {
			return false, s.dir.ReadError(errBadRegistry)
		}
		all = append(all, store.Record{
			Kind: kind, Name: string(key[len(prefix):]), Version: int64(binary.BigEndian.Uint64(value)), Value: append([]byte(nil), value[8:]...),
		})
		return true, nil
	})
	if err != nil {
		return nil, 0, err
	}
	change, err = s.number(registryKey("", ""))
	return all, change, err
}

// RegistryChange implements store.Registry.
func (s *registry) RegistryChange(ctx context.Context) (int64, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return 0, err
	}
	defer s.dir.Leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number(registryKey("", ""))
}
