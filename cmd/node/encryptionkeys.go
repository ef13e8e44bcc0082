package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/sealstore"
)

// DataKey is a key that a store is encrypted with, as its record has it.
type DataKey struct {
	ID     string
	Master string // id of the master key that wrapped it
	Made   time.Time
	Node   string // that made it
	Opens  bool   // with one of the master keys that are given

	Retired bool // nothing more is encrypted with it
	Needed  bool // something may be encrypted with it
}

// DataKeys returns those of the store of a configuration.
func (cfg *Config) DataKeys(ctx context.Context) (keys []DataKey, err error) {
	err = cfg.withRegistry(ctx, func(ctx context.Context, registry store.Registry) error {
		keys, err = dataKeys(ctx, registry, cfg.Encryption.masters)
		return err
	})
	return keys, err
}

func dataKeys(ctx context.Context, registry store.Registry, masters *sealstore.Masters) ([]DataKey, error) {
	infos, err := sealstore.List(ctx, registry, masters)
	if err != nil {
		return nil, err
	}
	keys := make([]DataKey, len(infos))
	for i, k := range infos {
		keys[i] = DataKey{ID: k.ID.String(), Master: k.Master, Made: k.Made.Time(), Node: k.Node, Opens: k.Opens, Retired: k.Retired, Needed: k.Needed}
	}
	return keys, nil
}

// MasterKeys are the ids of the master keys that are given.
func (cfg *Config) MasterKeys() []string {
	if cfg.Encryption.masters == nil {
		return nil
	}
	return cfg.Encryption.masters.IDs()
}

// RotateEncryption wraps the data keys of the store with the first of the master keys, and returns how many
// another one had wrapped.
func (cfg *Config) RotateEncryption(ctx context.Context) (rotated int, err error) {
	if cfg.Encryption.masters == nil {
		return 0, wrongf("--encryption-key is not given")
	}
	err = cfg.withRegistry(ctx, func(ctx context.Context, registry store.Registry) error {
		rotated, err = sealstore.Rotate(ctx, registry, cfg.Encryption.masters)
		return keyError(err)
	})
	return rotated, err
}

// withRegistry calls f with the registry of the store, which is open meanwhile.
func (cfg *Config) withRegistry(ctx context.Context, f func(ctx context.Context, registry store.Registry) error) error {
	st, err := openStore(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	registry, ok := st.(store.Registry)
	if !ok {
		return errors.Join(errors.New("the store keeps no keys"), st.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return errors.Join(f(ctx, registry), st.Close())
}

// encryptionFound is what there is to say of the keys of a store, and whether a node could not start with it.
func (cfg *Config) encryptionFound(ctx context.Context, st store.Store) (found string, wrong bool) {
	registry, ok := st.(store.Registry)
	if !ok {
		return "", false
	}
	keys, err := dataKeys(ctx, registry, cfg.Encryption.masters)
	if err != nil {
		return fmt.Sprintf("data keys cannot be read: %v", err), true
	}
	given := cfg.MasterKeys()
	closed, former := 0, 0
	for _, k := range keys {
		switch {
		case !k.Opens && k.Needed:
			closed++
		case !k.Opens:
		case k.Master != given[0]:
			former++
		}
	}
	switch {
	case len(keys) == 0 && given == nil:
		return "", false
	case given == nil:
		return fmt.Sprintf("the store has %d data keys, and --encryption-key is not given: no node can start", len(keys)), true
	case closed > 0:
		return fmt.Sprintf("%d of %d data keys do not open with the master keys that are given: no node can start", closed, len(keys)), true
	case former > 0:
		return fmt.Sprintf("%d of %d data keys are wrapped by another master key than the first: ddq encryption rotate wraps them anew", former, len(keys)), false
	}
	return fmt.Sprintf("the store is encrypted: %d data keys, all wrapped by master key %s; backups are of no use without it, and what is encrypted does not compress", len(keys), given[0]), false
}
