package sealstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/store"
)

// How processes learn that a key is retired: those that seal look every lookEvery, and seal nothing once they have
// not been able to for staleAfter.
const (
	lookEvery  = 5 * time.Second
	staleAfter = 15 * time.Second

	// settled is from when on nobody seals with a key that was retired: with staleAfter, time for what was
	// sealed to get into the store. In a process that is alone there is that only.
	settled      = staleAfter + 5*time.Second
	settledAlone = time.Second
)

// follow learns which keys are retired, unless it is known.
func (k *Keys) follow(ctx context.Context) error {
	age := time.Since(k.began) - time.Duration(k.looked.Load())
	if age < lookEvery || age < staleAfter && !k.mu.TryLock() {
		return nil // or somebody looks already
	}
	if age >= staleAfter {
		k.mu.Lock()
	}
	defer k.mu.Unlock()
	now := time.Since(k.began)
	change, err := k.registry.RegistryChange(ctx)
	if err == nil && change != k.change {
		err = k.read(ctx)
	}
	switch {
	case err == nil:
		k.change = change
		k.looked.Store(int64(now))
	case age >= staleAfter:
		return err
	}
	return nil
}

// Retire makes a key to seal with, and ends the use of all others that there are: other processes make keys of their
// own as soon as they learn of it, see Settle.
func (k *Keys) Retire(ctx context.Context) error {
	if k.config.ReadOnly {
		return errors.New("this process seals nothing")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	all, err := readRecords(ctx, k.registry)
	if err != nil {
		return err
	}
	for {
		if err := k.make(ctx); !errors.Is(err, store.ErrVersion) {
			if err != nil {
				return fmt.Errorf("make a data key: %w", err)
			}
			break
		}
	}
	for i := range all {
		if all[i].Retired != 0 {
			continue
		}
		if err := k.mark(ctx, all[i].id, func(r *record) { r.Retired = store.Millis(time.Now().UnixMilli()) }); err != nil {
			return err
		}
	}
	return k.read(ctx)
}

// markTries bounds how often a record is read again that others change: by a rotation.
const markTries = 10

// mark changes the record of a key. Under mu.
func (k *Keys) mark(ctx context.Context, id KeyID, change func(*record)) error {
	for range markTries {
		all, err := readRecords(ctx, k.registry)
		if err != nil {
			return err
		}
		for i := range all {
			if all[i].id != id {
				continue
			}
			change(&all[i].record)
			err = all[i].put(ctx, k.registry)
		}
		if !errors.Is(err, store.ErrVersion) {
			return err // nil, too, when the record is gone
		}
	}
	return fmt.Errorf("%w: the record of data key %v changes all the time", store.ErrUnavailable, id)
}

// Settle waits until nobody seals any more with keys that are retired, and returns those that may still be needed.
func (k *Keys) Settle(ctx context.Context) ([]KeyID, error) {
	wait := settled
	if k.config.Alone {
		wait = settledAlone
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	all, err := readRecords(ctx, k.registry)
	var ids []KeyID
	for i := range all {
		if all[i].Retired != 0 && !all[i].unneeded() {
			ids = append(ids, all[i].id)
		}
	}
	return ids, errors.Join(err, k.look(ctx))
}

// Clear notes that nothing is sealed any more with keys that are retired.
func (k *Keys) Clear(ctx context.Context, ids []KeyID) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		if err := k.mark(ctx, id, func(r *record) { r.Cleared = store.Millis(time.Now().UnixMilli()) }); err != nil {
			return err
		}
	}
	return nil
}
