package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ddq-io/ddq/store"
)

// Config says which Redis to use and how.
type Config struct {
	// URL is redis://[user:password@]host:port[/db], rediss:// for TLS, or
	// unix:///path/to/socket. Required.
	URL string

	// AllowVolatile accepts a Redis without append-only file, which loses
	// acknowledged tasks when it stops.
	AllowVolatile bool

	// PoolSize is the most connections kept open. More let more calls run at
	// once, though Redis works on one at a time. Defaults to 16.
	PoolSize int

	// DialTimeout bounds making a connection. Defaults to 2s.
	DialTimeout time.Duration

	// Timeout bounds sending a call and waiting for its answer, after which its
	// outcome is unknown. It must exceed the longest stall of the server.
	// Defaults to 5s.
	Timeout time.Duration

	// CheckEvery is the pause between checks of the server's configuration, which
	// Info reports. Defaults to 30s.
	CheckEvery time.Duration
}

// Store is a store.Store in Redis. It owns one goroutine, which checks the
// server's configuration, besides those of the client's connections.
type Store struct {
	client        redis.UniversalClient
	lua           *scripts
	log           *slog.Logger
	allowVolatile bool

	shards sync.Map // store.Shard -> *shardKeys
	info   atomic.Pointer[store.Info]
	closed atomic.Bool
	stop   func() error // ends everything, once
}

var _ store.Store = (*Store)(nil)

// Open connects to a Redis and checks that it may be trusted with tasks:
// store.ErrUnsafe says what to change when not, store.ErrUnavailable that it
// could not be reached.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*Store, error) {
	lua, err := loadScripts()
	if err != nil {
		return nil, err
	}
	client, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	s := &Store{client: client, lua: lua, log: log, allowVolatile: cfg.AllowVolatile}
	if err := s.checkFirst(ctx); err != nil {
		client.Close()
		return nil, err
	}
	watching, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.watch(watching, cmp.Or(cfg.CheckEvery, 30*time.Second))
	}()
	s.stop = sync.OnceValue(func() error {
		s.closed.Store(true)
		cancel()
		<-done
		return client.Close()
	})
	return s, nil
}

// connect makes the client. It never sends anything twice by itself: a script
// whose answer was lost may have run, and repeating it is the caller's choice.
func connect(cfg Config) (redis.UniversalClient, error) {
	opts, err := redis.ParseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("redis url: %w", err)
	}
	logging.Disable() // of the library, to stderr: it returns everything as an error too
	opts.MaxRetries = -1
	opts.ContextTimeoutEnabled = true
	opts.PoolSize = cmp.Or(cfg.PoolSize, 16)
	opts.DialTimeout = cmp.Or(cfg.DialTimeout, 2*time.Second)
	opts.DialerRetries = 1
	opts.ReadTimeout = cmp.Or(cfg.Timeout, 5*time.Second)
	opts.WriteTimeout = opts.ReadTimeout
	opts.ReadBufferSize, opts.WriteBufferSize = 64<<10, 64<<10
	opts.Protocol = 2 // scripts answer the same in both; no pushes to look out for
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewClient(opts), nil
}

// checkFirst refuses a server that must not be used.
func (s *Store) checkFirst(ctx context.Context) error {
	h, err := s.probe(ctx)
	if err != nil {
		return fmt.Errorf("open redis: %w: is it running, and is the url right?", translate(err, store.ErrUnavailable))
	}
	if dangers := h.dangers(s.allowVolatile); len(dangers) > 0 {
		return fmt.Errorf("open redis: %w: %s", store.ErrUnsafe, dangers[0])
	}
	info := h.info(s.allowVolatile)
	s.info.Store(&info)
	return nil
}

// Close implements store.Store.
func (s *Store) Close() error { return s.stop() }

// enter is the beginning of every call.
func (s *Store) enter(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// keys returns the keys of a shard, made on first use.
func (s *Store) keys(shard store.Shard) *shardKeys {
	if keys, ok := s.shards.Load(shard); ok {
		return keys.(*shardKeys)
	}
	keys, _ := s.shards.LoadOrStore(shard, newShardKeys(shard))
	return keys.(*shardKeys)
}

// Clock implements store.Store.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	now, err := s.client.Time(ctx).Result()
	if err != nil {
		return time.Time{}, readError("clock", err)
	}
	return now.UTC(), nil
}
