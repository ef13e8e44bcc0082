package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
)

// Config says which Redis to use and how.
type Config struct {
	// URL says where the servers are. Required. One of
	//
	//	redis://[user:password@]host:port[/db]
	//	unix:///path/to/socket
	//	redis-sentinel://[user:password@]host:port[,host:port...]/name[/db]
	//	redis-cluster://[user:password@]host:port[,host:port...]
	//
	// and rediss, rediss-sentinel, rediss-cluster for TLS, where the certificate of
	// every server must be valid for the name of the first host. User and password are
	// those of the servers; sentinels have sentinel_username and sentinel_password
	// as options behind a ?, where wait_replicas and wait_timeout may stand as well.
	URL string

	// WaitReplicas is how many replicas must have a change before it is answered
	// with success; each change costs at least a round trip to them, and none
	// succeeds while fewer can be reached. Option wait_replicas in the URL goes
	// before. Defaults to 0.
	WaitReplicas int

	// WaitTimeout is how long they are waited for, after which the outcome of the
	// change is unknown. It must be below Timeout. Option wait_timeout in the URL
	// goes before. Defaults to 1s.
	WaitTimeout time.Duration

	// AllowVolatile accepts a Redis without append-only file, which loses
	// acknowledged tasks when it stops.
	AllowVolatile bool

	// PoolSize is the most connections kept open to each server. More let more calls run at
	// once, though Redis works on one at a time. Defaults to 16.
	PoolSize int

	// DialTimeout bounds making a connection. Defaults to 2s.
	DialTimeout time.Duration

	// Timeout bounds sending a call and waiting for its answer, after which its
	// outcome is unknown. It must exceed the longest stall of the server. Behind
	// sentinels and in a cluster it also bounds how long a call that was refused
	// is tried again while another server takes over. Defaults to 5s.
	Timeout time.Duration

	// CheckEvery is the pause between checks of the servers' configuration, which
	// Info reports. Defaults to 30s.
	CheckEvery time.Duration
}

func (c Config) timeout() time.Duration { return cmp.Or(c.Timeout, 5*time.Second) }

// Store is a store.Store in Redis. It owns one goroutine, which checks the
// servers' configuration, besides those of the clients.
type Store struct {
	nodes         *nodes
	renewals      *nodes // the same servers, on a connection that nothing else waits for
	wait          wait
	lua           *scripts
	log           *slog.Logger
	allowVolatile bool

	shards keyCache
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
	t, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	w, err := newWait(cfg, t)
	if err != nil {
		return nil, err
	}
	s := &Store{nodes: connect(cfg, t.copy()), renewals: connectOnce(cfg, t), wait: w, lua: lua, log: log, allowVolatile: cfg.AllowVolatile}
	if err := s.checkFirst(ctx); err != nil {
		return nil, errors.Join(err, s.closeAll())
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
		return s.closeAll()
	})
	return s, nil
}

// checkFirst refuses a server that must not be used.
func (s *Store) checkFirst(ctx context.Context) error {
	found, err := s.probe(ctx)
	if err != nil {
		return fmt.Errorf("open redis: %w: is it running, and is the url right?", translate(err, store.ErrUnavailable))
	}
	if dangers := found.dangers(s.allowVolatile); len(dangers) > 0 {
		return fmt.Errorf("%w: %s", store.ErrUnsafe, dangers[0])
	}
	info := found.info(s.allowVolatile, s.wait)
	s.info.Store(&info)
	return nil
}

func (s *Store) closeAll() error { return errors.Join(s.nodes.close(), s.renewals.close()) }

// Close implements store.Store.
func (s *Store) Close() error { return s.stop() }

// enter is the beginning of every call.
func (s *Store) enter(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// keys returns the keys of a shard.
func (s *Store) keys(shard store.Shard) *shardKeys { return s.shards.of(shard) }

// Clock implements store.Store. In a cluster it is that of the node that has the
// topics, so that it does not jump between nodes.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	now := redis.NewTimeCmd(ctx, "time")
	if err := s.nodes.send(ctx, topicsKey, now); err != nil {
		return time.Time{}, readError("clock", err)
	}
	return now.Val().UTC(), nil
}
