package conn

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// nodes are the servers of a store: one, the primary that sentinels name, or the
// primaries of a cluster. The clients never send anything twice by themselves: a
// script whose answer was lost may have run, and repeating it is the caller's
// choice.
type nodes struct {
	one     *redis.Client        // nil: a cluster
	cluster *redis.ClusterClient // nil: no cluster
	// patience is how long a command that cannot have run is sent again, while
	// another server takes over; 0 where none does.
	patience time.Duration
	ids      *identities

	mu       sync.Mutex
	closed   bool                     // guarded by mu
	template redis.Options            // of a client of the cluster's; guarded by mu
	others   map[string]*redis.Client // that redirections named, by address; guarded by mu
}

// connect makes the clients of the servers; nothing is sent yet.
func connect(cfg Config, t target, ids *identities) *nodes {
	logging.Disable() // of the library, to stderr: it returns everything as an error too
	size := cmp.Or(cfg.PoolSize, 16)
	dial, answer := cmp.Or(cfg.DialTimeout, 2*time.Second), cfg.timeout()
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch {
	case t.sentinel != nil:
		o := t.sentinel
		o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
		o.PoolSize, o.PipelinePoolSize = size, size
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dial, answer, answer
		o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
		o.Protocol, o.DisableIdentity = 2, true
		o.Dialer, o.OnConnect = dialer(dial, cfg.secure(o.TLSConfig)), ids.greet("")
		client := redis.NewFailoverClient(o)
		client.AddHook(ids.keep(""))
		return &nodes{one: client, patience: answer, ids: ids}
	case t.cluster != nil:
		o := t.cluster
		o.MaxRetries, o.MaxRedirects, o.DialerRetries, o.ContextTimeoutEnabled = -1, -1, 1, true
		o.PoolSize, o.PipelinePoolSize = size, size
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dial, answer, answer
		o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
		o.Protocol, o.DisableIdentity, o.MaintNotificationsConfig = 2, true, quiet
		o.ClusterStateReloadInterval = time.Second // by default it goes on failing for most of a minute
		o.Dialer = dialer(dial, cfg.secure(o.TLSConfig))
		n := &nodes{patience: answer, ids: ids, others: make(map[string]*redis.Client)}
		o.NewClient = n.newClient
		n.cluster = redis.NewClusterClient(o)
		return n
	}
	o := t.one
	o.MaxRetries, o.DialerRetries, o.ContextTimeoutEnabled = -1, 1, true
	o.PoolSize = size
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dial, answer, answer
	o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	o.Protocol = 2 // scripts answer the same in both; no pushes to look out for
	o.DisableIdentity, o.MaintNotificationsConfig = true, quiet
	o.Dialer, o.OnConnect = dialer(dial, cfg.secure(o.TLSConfig)), ids.greet("")
	client := redis.NewClient(o)
	client.AddHook(ids.keep(""))
	return &nodes{one: client, ids: ids}
}

// connectOnce makes clients of their own, of one connection to each server. None is made
// before something is sent.
func connectOnce(cfg Config, t target, ids *identities) *nodes {
	cfg.PoolSize = 1
	return connect(cfg, t, ids)
}

// bufferSize is that of a connection in each direction.
const bufferSize = 64 << 10

// newClient makes the client of one node of a cluster.
func (n *nodes) newClient(o *redis.Options) *redis.Client {
	n.mu.Lock()
	n.template = *o
	n.mu.Unlock()
	o.OnConnect = n.ids.greet(o.Addr)
	client := redis.NewClient(o)
	client.AddHook(n.ids.keep(o.Addr))
	client.AddHook(hurryTopology{})
	return client
}

// of returns the node that has a key.
func (n *nodes) of(ctx context.Context, key string) (*redis.Client, error) {
	if n.one != nil {
		return n.one, nil
	}
	client, err := n.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, &unsentError{err}
	}
	return client, nil
}

// at returns the node of an address that another node named. It may have joined
// the cluster a moment ago and own no slot, so the library need not know it.
func (n *nodes) at(addr string) (*redis.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, redis.ErrClosed
	}
	client, ok := n.others[addr]
	if !ok {
		o := n.template
		o.Addr, o.OnConnect = addr, n.ids.greet(addr)
		client = redis.NewClient(&o)
		client.AddHook(n.ids.keep(addr))
		n.others[addr] = client
	}
	return client, nil
}

// each does something with every primary, at once.
func (n *nodes) each(ctx context.Context, do func(ctx context.Context, node *redis.Client) error) error {
	if n.one != nil {
		return do(ctx, n.one)
	}
	if err := n.cluster.ForEachMaster(ctx, do); err != nil {
		return err
	}
	return nil
}

func (n *nodes) close() error {
	if n.one != nil {
		return n.one.Close()
	}
	n.mu.Lock()
	n.closed = true
	others := n.others
	n.others = nil
	n.mu.Unlock()
	err := n.cluster.Close()
	for _, client := range others {
		err = cmp.Or(err, client.Close())
	}
	return err
}

// unsentError is an error from before a command was sent.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return strings.ReplaceAll(e.err.Error(), "\n", ", ") }
func (e *unsentError) Unwrap() error { return e.err }

// hurryTopology bounds how long a node is asked for the layout of the cluster.
// One that stands still would keep the library from asking another, and every
// call from finding the node that took over.
type hurryTopology struct{}

func (hurryTopology) DialHook(next redis.DialHook) redis.DialHook { return next }

func (hurryTopology) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Args()[0] == "cluster" {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Second)
			defer cancel()
		}
		return next(ctx, cmd)
	}
}

func (hurryTopology) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
