package sealstore

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/ddq-io/ddq/store"
)

// OpenKeyless returns the keys of a process that has no master key. A store that has data keys already is refused,
// with a KeyError. Should another process begin to seal later, what it seals is not known here: it is not handed
// out, and Keys.Ready says so from then on.
func OpenKeyless(ctx context.Context, registry store.Registry, log *slog.Logger) (*Keys, error) {
	if err := Check(ctx, registry); err != nil {
		return nil, err
	}
	return newKeys(registry, nil, Config{ReadOnly: true}, log), nil
}

// close notes that there is a data key, which this process cannot unwrap. Under mu.
func (k *Keys) close(id KeyID) {
	if (*k.closed.Load())[id] {
		return
	}
	all := maps.Clone(*k.closed.Load())
	all[id] = true
	k.closed.Store(&all)
}

// seals reports whether there is a data key of that id. Where there is a master key, what is marked is taken for
// sealed without a look: without one it may be what a user wrote.
func (k *Keys) seals(ctx context.Context, id KeyID) (bool, error) {
	if k.masters != nil || (*k.closed.Load())[id] {
		return true, nil
	}
	if k.missing.due(id, time.Now()) {
		if err := k.look(ctx); err != nil {
			return false, err
		}
	}
	return (*k.closed.Load())[id], nil
}

// errKeyless is about a store in which others seal.
var errKeyless = errors.New("the store is encrypted by other nodes, and this one has no key: start it with theirs")
