package sealstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Config is how Keys are used.
type Config struct {
	// Node is who makes the data keys, for people.
	Node string

	// ReadOnly has nothing sealed: what is sealed is read all the same. A fleet begins with that,
	// so that no node seals what another one cannot read.
	ReadOnly bool

	// Alone says that no other process uses the store.
	Alone bool
}

// Bounds of data keys.
const (
	maxSeals  = 1 << 30     // under a key, by a process: nonces are random
	mostKeys  = 2000        // beyond them processes share what there is
	lookPause = time.Second // between two looks for the same key
)

// Keys are the data keys of a store, as this process knows them, and the one that it seals with.
type Keys struct {
	config   Config
	registry store.Registry
	masters  *Masters
	log      *slog.Logger

	known   atomic.Pointer[map[KeyID]*dataKey]
	closed  atomic.Pointer[map[KeyID]bool] // of a process without master keys: those that there are
	current atomic.Pointer[dataKey]        // to seal with; nil when nothing is sealed
	missing missing
	corrupt atomic.Int64

	mu     sync.Mutex   // held over calls of the registry
	looked atomic.Int64 // when it was last known which keys are retired, in nanoseconds since began
	began  time.Time
	change int64 // of the registry, as it was then; guarded by mu
}

// OpenKeys reads the data keys of a store and makes one of this process. A KeyError says that the
// master keys do not unwrap them, and which ones they need.
func OpenKeys(ctx context.Context, registry store.Registry, masters *Masters, config Config, log *slog.Logger) (*Keys, error) {
	k := newKeys(registry, masters, config, log)
	all, err := readRecords(ctx, registry)
	if err != nil {
		return nil, err
	}
	var wrong []stored
	for i := range all {
		if err := k.learn(&all[i]); err != nil && !all[i].unneeded() {
			wrong = append(wrong, all[i])
		}
	}
	if len(wrong) > 0 {
		return nil, otherKeys(masters, wrong)
	}
	if config.ReadOnly {
		return k, nil
	}
	return k, k.renew(ctx, nil)
}

func newKeys(registry store.Registry, masters *Masters, config Config, log *slog.Logger) *Keys {
	k := &Keys{config: config, registry: registry, masters: masters, log: log, began: time.Now()}
	k.known.Store(&map[KeyID]*dataKey{})
	k.closed.Store(&map[KeyID]bool{})
	return k
}

// learn unwraps a data key, unless it is known, and notes whether it is retired.
func (k *Keys) learn(s *stored) error {
	if k.masters == nil {
		k.close(s.id)
		return nil
	}
	if one, ok := (*k.known.Load())[s.id]; ok {
		one.retired.Store(s.Retired != 0)
		return nil
	}
	key, err := k.masters.unwrap(s.id, s.Master, s.Key)
	if err != nil {
		return err
	}
	one, err := newDataKey(s.id, key)
	if err != nil {
		return err
	}
	one.retired.Store(s.Retired != 0)
	k.add(one)
	return nil
}

// add makes a key known. Under mu, or before anybody else has k.
func (k *Keys) add(one *dataKey) {
	all := maps.Clone(*k.known.Load())
	all[one.id] = one
	k.known.Store(&all)
}

// find returns the key of that id; ErrUnknownKey when there is none, or it cannot be unwrapped.
func (k *Keys) find(ctx context.Context, id KeyID) (*dataKey, error) {
	one := (*k.known.Load())[id]
	if one != nil {
		return one, nil
	}
	if k.missing.due(id, time.Now()) {
		if err := k.look(ctx); err != nil {
			return nil, err
		}
		if one = (*k.known.Load())[id]; one != nil {
			return one, nil
		}
	}
	if k.missing.note(id, time.Now()) {
		k.log.Error("something is sealed with a data key that is not known: it waits for the key", "key", id.String())
	}
	return nil, fmt.Errorf("%w: %v", ErrUnknownKey, id)
}

// look reads the records again, for a key that another process made.
func (k *Keys) look(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read(ctx)
}

// read reads the records. Under mu.
func (k *Keys) read(ctx context.Context) error {
	all, err := readRecords(ctx, k.registry)
	if err != nil {
		return err
	}
	for i := range all {
		if err := k.learn(&all[i]); err != nil && !all[i].unneeded() {
			k.log.Warn("data key cannot be used", "key", all[i].id.String(), "err", err)
		}
	}
	return nil
}

// sealing returns the key to seal with; nil when nothing is sealed.
func (k *Keys) sealing(ctx context.Context) (*dataKey, error) {
	one := k.current.Load()
	if one == nil {
		return nil, nil
	}
	if err := k.follow(ctx); err != nil {
		return nil, fmt.Errorf("look whether the data key is retired: %w", err)
	}
	if one.used.Load() < maxSeals && !one.retired.Load() {
		return one, nil
	}
	if err := k.renew(ctx, one); err != nil {
		return nil, fmt.Errorf("make a data key: %w", err)
	}
	return k.current.Load(), nil
}

// renew makes a key to seal with in the place of one, unless somebody else did.
func (k *Keys) renew(ctx context.Context, old *dataKey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current.Load() != old {
		return nil
	}
	if len(*k.known.Load()) >= mostKeys {
		if other := k.another(old); other != nil {
			k.current.Store(other)
			return nil
		}
	}
	for {
		err := k.make(ctx)
		if !errors.Is(err, store.ErrVersion) { // another key has the id
			return err
		}
	}
}

// make makes a key whose record is there before it is used.
func (k *Keys) make(ctx context.Context) error {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails
	s := newRecord(k.masters, k.config.Node, key, time.Now())
	if err := s.put(ctx, k.registry); err != nil {
		return err
	}
	one, err := newDataKey(s.id, key)
	if err != nil {
		return err
	}
	k.add(one)
	k.current.Store(one)
	return nil
}

// another returns a key that is known and in use, at random, but not old; nil: there is none.
func (k *Keys) another(old *dataKey) *dataKey {
	for _, one := range *k.known.Load() { // in a random order
		if one != old && !one.retired.Load() {
			return one
		}
	}
	return nil
}
