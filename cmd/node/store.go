package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/pebblestore"
	"github.com/ddq-io/ddq/store/redisstore"
)

// Stores besides the URL of a Redis.
const (
	Embedded = "embedded"
	Memory   = "memory"
)

// openTimeout bounds how long a node waits for its store.
const openTimeout = 10 * time.Second

// checkStore refuses a --store that openStore could not make sense of.
func checkStore(name string) error {
	switch {
	case name == Embedded, name == Memory:
		return nil
	}
	if err := redisstore.CheckURL(name); err != nil {
		return wrongf("--store is embedded, memory, or the URL of a Redis: %v", err)
	}
	return nil
}

func openStore(ctx context.Context, cfg *Config, log *slog.Logger) (store.Store, error) {
	switch cfg.Store {
	case Memory:
		log.Warn("tasks are kept in memory only and end with this process")
		return memstore.New(), nil
	case Embedded:
		return openEmbedded(cfg.Data, log)
	}
	redis.SetLogger(redisLog{log})
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	st, err := redisstore.Open(ctx, redisstore.Config{URL: cfg.Store, AllowVolatile: cfg.AllowVolatile, TLS: cfg.StoreTLS.client()}, log)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", cfg.StoreName(), err)
	}
	return st, nil
}

// redisLog takes what the Redis library would print on stderr by itself. Whoever
// made the call gets an error besides, so it is for those who debug.
type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "redis library", "text", fmt.Sprintf(format, args...))
}

func openEmbedded(dir string, log *slog.Logger) (store.Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	st, err := pebblestore.Open(pebblestore.Config{Dir: dir, OpenFiles: processDescriptors().files}, log)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", dir, err)
	}
	return st, nil
}

// StoreName is the store for people and logs: without a password.
func (cfg *Config) StoreName() string {
	if cfg.Store == Embedded || cfg.Store == Memory {
		return cfg.Store
	}
	return redisstore.RedactURL(cfg.Store)
}
