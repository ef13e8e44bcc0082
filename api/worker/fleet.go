package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
)

const (
	lookEvery   = 5 * time.Second        // for the nodes, give or take a fifth
	lookGap     = 100 * time.Millisecond // between two looks, whatever asks for them
	lookTimeout = 2 * time.Second        // for one node to answer
	forgetAfter = 5 * time.Second        // a node that is no longer named: views of nodes differ for a while
)

// member is a node of the fleet.
type member struct {
	name, addr string
	active     bool      // it wants shards, when it was named last
	named      time.Time // when that was
}

// fleet is what a worker with Direct knows of the nodes, and its connections to
// them. run owns it; the other methods are for any goroutine.
type fleet struct {
	admin   ddqv1.AdminServiceClient
	options client.Config
	log     *slog.Logger
	look    chan struct{} // somebody has a reason to look now

	mu      sync.Mutex
	known   []member         // by name; guarded by mu
	changed chan struct{}    // closed after each look; guarded by mu
	nodes   map[string]*node // in use, by address; guarded by mu
}

// node is the connection to a node.
type node struct {
	addr  string
	conn  *grpc.ClientConn
	close func() error
	queue ddqv1.DelayQueueServiceClient
	admin ddqv1.AdminServiceClient
	users int // guarded by fleet.mu
}

func newFleet(conn grpc.ClientConnInterface, cfg *settings) *fleet {
	return &fleet{
		admin:   ddqv1.NewAdminServiceClient(conn),
		options: client.Config{DialOptions: cfg.DialOptions, Timeout: flushTimeout},
		log:     cfg.Logger,
		look:    make(chan struct{}, 1),
		changed: make(chan struct{}),
		nodes:   make(map[string]*node),
	}
}

// members returns the nodes that are known, and a channel that is closed when that
// was looked up again.
func (f *fleet) members() ([]member, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known, f.changed
}

// refresh has the nodes looked for soon.
func (f *fleet) refresh() {
	if f != nil {
		poke(f.look)
	}
}

// run looks for the nodes until ctx ends.
func (f *fleet) run(ctx context.Context) {
	for warned := false; ctx.Err() == nil; {
		pause := lookEvery - lookEvery/5 + rand.N(2*lookEvery/5)
		switch list, err := f.list(ctx); {
		case err == nil:
			f.learn(list, time.Now())
			warned = false
		case ctx.Err() == nil:
			if !warned {
				f.log.Warn("nodes not learned; tasks come by way of any", "err", err)
			}
			warned = true
			pause = min(pause, time.Second+rand.N(time.Second))
		}
		if !f.rest(ctx, lookGap+rand.N(lookGap), nil) {
			return
		}
		f.rest(ctx, pause, f.look)
	}
}

// rest waits; false means that ctx ended.
func (f *fleet) rest(ctx context.Context, d time.Duration, sooner <-chan struct{}) bool {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-sooner:
	case <-ctx.Done():
		return false
	}
	return true
}

// list asks for the nodes: where the worker's own connection leads, and if nobody
// answers there, the nodes that are known.
func (f *fleet) list(ctx context.Context) (list []*ddqv1.Node, err error) {
	f.mu.Lock()
	ask := []ddqv1.AdminServiceClient{f.admin}
	for _, n := range f.nodes {
		ask = append(ask, n.admin)
	}
	f.mu.Unlock()
	for _, admin := range ask {
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		reply, e := admin.ListNodes(ctx, &ddqv1.ListNodesRequest{WithoutLoad: true}, grpc.ForceCodecV2(codec.Proto))
		cancel()
		if e == nil {
			return reply.GetNodes(), nil
		}
		err = errors.Join(err, e)
	}
	return nil, err
}

// learn records the nodes that one of them names.
func (f *fleet) learn(list []*ddqv1.Node, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := make(map[string]member)
	for _, m := range f.known {
		if m.active = false; now.Sub(m.named) < forgetAfter {
			known[m.name] = m
		}
	}
	for _, n := range list {
		active := n.GetState() == ddqv1.NodeState_NODE_STATE_ACTIVE
		known[n.GetName()] = member{n.GetName(), n.GetAddr(), active, now}
	}
	f.known = slices.SortedFunc(maps.Values(known), func(a, b member) int { return cmp.Compare(a.name, b.name) })
	for _, n := range f.nodes {
		n.conn.ResetConnectBackoff() // one that was away may be back
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// node connects to the node at an address, which drop ends. An error means that the
// address is malformed.
func (f *fleet) node(addr string) (*node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[addr]
	if n == nil {
		c, err := client.Dial(addr, f.options)
		if err != nil {
			return nil, err
		}
		n = &node{
			addr: addr, close: c.Close,
			queue: ddqv1.NewDelayQueueServiceClient(c.Conn()),
			admin: ddqv1.NewAdminServiceClient(c.Conn()),
		}
		n.conn, _ = c.Conn().(*grpc.ClientConn)
		f.nodes[addr] = n
	}
	n.users++
	return n, nil
}

// drop ends one use of a node.
func (f *fleet) drop(n *node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n.users--; n.users == 0 {
		delete(f.nodes, n.addr)
		_ = n.close() // fails only when it is closed
	}
}
