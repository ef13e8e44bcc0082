package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/sealstore"
)

// EncryptionConfig is how the store has what users wrote.
type EncryptionConfig struct {
	Key  string // file:PATH or env:NAME, of master keys; empty: nothing is encrypted
	Mode string

	masters *sealstore.Masters // set by check; nil: none
}

// What becomes of bodies when there is a key, by --encryption.
const (
	encryptionOn   = "on"
	encryptionRead = "read"
)

func (e *EncryptionConfig) flags(fs *pflag.FlagSet) {
	fs.StringVar(&e.Key, "encryption-key", "", "where the master keys are that the store is encrypted with, 32 bytes in base64 on each line, the one in use first: file:PATH or env:NAME (default none: nothing is encrypted)")
	fs.StringVar(&e.Mode, "encryption", encryptionOn, "on, or read: what is encrypted is read, and nothing more is encrypted. A fleet starts each node with read before the first one with on")
}

func (e *EncryptionConfig) check() error {
	switch {
	case e.Mode != "" && e.Mode != encryptionOn && e.Mode != encryptionRead:
		return wrongf("--encryption is on or read, not %q", e.Mode)
	case e.Key == "" && e.Mode == encryptionRead:
		return wrongf("--encryption read needs --encryption-key")
	case e.Key == "":
		return nil
	}
	text, err := readMasters(e.Key)
	if err == nil {
		e.masters, err = sealstore.ParseMasters(text)
	}
	if err != nil {
		return wrongf("--encryption-key: %v", err)
	}
	return nil
}

// readMasters returns the text that --encryption-key names.
func readMasters(where string) (string, error) {
	if name, ok := strings.CutPrefix(where, "env:"); ok {
		return os.Getenv(name), nil
	}
	name, ok := strings.CutPrefix(where, "file:")
	if !ok {
		return "", errors.New("it is file:PATH or env:NAME: a key on the command line is seen by every user of the machine")
	}
	return readKeys(name)
}

// open returns the store as the node uses it, and its keys. A store that was encrypted is refused without them, and
// one that other nodes begin to encrypt later is found to be.
func (e *EncryptionConfig) open(ctx context.Context, st store.Store, node string, alone bool, log *slog.Logger) (store.Store, *sealstore.Keys, error) {
	inner, ok := st.(sealstore.Inner)
	if !ok {
		return nil, nil, errors.New("the store keeps no keys")
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if e.masters == nil {
		keys, err := sealstore.OpenKeyless(ctx, inner, log)
		if err != nil {
			return nil, nil, keyError(err)
		}
		return sealstore.New(inner, keys), keys, nil
	}
	keys, err := sealstore.OpenKeys(ctx, inner, e.masters, sealstore.Config{Node: node, ReadOnly: e.Mode == encryptionRead, Alone: alone}, log)
	if err != nil {
		return nil, nil, keyError(err)
	}
	return sealstore.New(inner, keys), keys, nil
}

// keyError makes a setting out of a key that is wrong, or missing.
func keyError(err error) error {
	if errors.As(err, new(sealstore.KeyError)) {
		return wrongf("--encryption-key: %w", err)
	}
	return err
}

// registerKeys shows how the keys of the store do.
func registerKeys(keys *sealstore.Keys, reg prometheus.Registerer) error {
	count := func(name, help string, n func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(n()) })
	}
	return errors.Join(
		reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "ddq_encryption_keys", Help: "Data keys of the store that this node knows.",
		}, func() float64 { return float64(keys.Known()) })),
		reg.Register(count("ddq_encryption_unknown_key_total", "Reads of something that is encrypted with a data key that this node does not know.", keys.Missed)),
		reg.Register(count("ddq_encryption_corrupt_total", "Reads of something encrypted that was changed, or is of another topic.", keys.Corrupt)),
	)
}

// provideStore opens the store. Its metrics are there when it is.
func provideStore(ctx context.Context, cfg *Config, log *slog.Logger, reg *prometheus.Registry) (store.Store, *sealstore.Keys, error) {
	st, err := openStore(ctx, cfg, log)
	if err != nil {
		return nil, nil, startError{err}
	}
	used, keys, err := cfg.Encryption.open(ctx, st, cfg.Actors.Node, cfg.Store == Embedded || cfg.Store == Memory, log)
	if err == nil {
		err = registerKeys(keys, reg)
	}
	if err != nil {
		return nil, nil, startError{errors.Join(err, st.Close())}
	}
	if cfg.Encryption.masters != nil {
		log.Info("the store is encrypted", "master", fmt.Sprint(cfg.Encryption.masters), "mode", cfg.Encryption.Mode)
	}
	return used, keys, nil
}
