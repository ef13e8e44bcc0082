package peer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	grpcbackoff "google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

// Config of Peers. The zero value works.
type Config struct {
	// DialOptions are added to those of each connection, such as credentials,
	// without which connections are not encrypted.
	DialOptions []grpc.DialOption

	// Credential is the value of the authorization header for a call of a method of a
	// node. Defaults to none.
	Credential func(node, method string) string
}

const (
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
	maxReceive       = 64 << 20 // a frame has up to 1 MiB and one task, of any size that topics allow
)

// reconnect is the pause between attempts to connect. gRPC's own grows to two
// minutes, and that long after its return tasks of a node would wait.
var reconnect = grpcbackoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.3, MaxDelay: 2 * time.Second}

// Peers are the other nodes. It owns a goroutine for each node that was notified
// and two for each subscription; Close waits for them. Its methods are safe for
// concurrent use.
type Peers struct {
	config Config
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	nodes  map[string]*node // by address; guarded by mu
	closed bool             // guarded by mu
}

var _ fleet.Peers = (*Peers)(nil)

// node is one other node, until it has left the fleet and nothing goes on there.
type node struct {
	addr    string
	name    *atomic.Pointer[string] // of whoever is there now
	conn    *grpc.ClientConn
	queue   ddqv1.DelayQueueServiceClient
	peer    ddqv1.PeerServiceClient
	notices *notices
	stop    context.CancelFunc // of notices

	uses int  // subscriptions; guarded by Peers.mu
	left bool // it is no member; guarded by Peers.mu
}

// New returns the peers of a node. It connects to each when there is something to say.
func New(c Config, log *slog.Logger) *Peers {
	ctx, cancel := context.WithCancel(context.Background())
	return &Peers{config: c, log: log, ctx: ctx, cancel: cancel, nodes: make(map[string]*node)}
}

// Close breaks every connection and waits for all goroutines. It may be called twice.
func (p *Peers) Close() error {
	p.mu.Lock()
	p.closed = true
	nodes := p.nodes
	p.nodes = nil
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
	for _, n := range nodes {
		_ = n.conn.Close() // fails only when it is closed
	}
	return nil
}

// Keep says who is a member. The connection to a node that is none is closed once
// no subscription goes over it: one that is only out of sight of gossip may still
// serve those that it has.
func (p *Peers) Keep(members []fleet.Member) {
	there := make(map[string]bool, len(members))
	for _, m := range members {
		there[m.Addr] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for addr, n := range p.nodes {
		n.left = !there[addr]
		p.tidy(n)
	}
}

// tidy forgets a node that has left, unless a subscription is there. The caller
// holds mu.
func (p *Peers) tidy(n *node) {
	if !n.left || n.uses > 0 || p.nodes[n.addr] != n {
		return
	}
	delete(p.nodes, n.addr)
	n.stop()
	p.wg.Go(func() { _ = n.conn.Close() }) // fails only when it is closed
}

// node returns the node at an address; an error means that the address is
// malformed, or that Peers is closed.
func (p *Peers) node(to fleet.Member) (*node, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connect(to)
}

// connect is node for a caller that holds mu.
func (p *Peers) connect(to fleet.Member) (*node, error) {
	addr := to.Addr
	if p.closed {
		return nil, errClosed
	}
	if n := p.nodes[addr]; n != nil {
		n.name.Store(&to.Name)
		return n, nil
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec.Proto), grpc.MaxCallRecvMsgSize(maxReceive)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: 5 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
	}
	name := new(atomic.Pointer[string])
	name.Store(&to.Name)
	if p.config.Credential != nil {
		options = append(options, grpc.WithPerRPCCredentials(nodeCredential{name, p.config.Credential}))
	}
	conn, err := grpc.NewClient(addr, append(options, p.config.DialOptions...)...)
	if err != nil {
		return nil, fmt.Errorf("node at %s: %w", addr, err)
	}
	n := &node{
		addr:  addr,
		name:  name,
		conn:  conn,
		queue: ddqv1.NewDelayQueueServiceClient(conn),
		peer:  ddqv1.NewPeerServiceClient(conn),
	}
	n.notices = newNotices(n.peer, p.log.With("addr", addr))
	ctx, stop := context.WithCancel(p.ctx)
	n.stop = stop
	p.nodes[addr] = n
	p.wg.Go(func() { n.notices.run(ctx) })
	return n, nil
}

// Notify queues hints for a node. Those that it cannot take are dropped.
func (p *Peers) Notify(to fleet.Member, notice fleet.Notice) {
	if n, err := p.node(to); err == nil {
		n.notices.add(&notice)
	}
}

// Subscribe opens a subscription with credit on demand. Its link hears of failures:
// before Subscribe returns when this node stops or nobody can dial the address.
func (p *Peers) Subscribe(to fleet.Member, o subscription.Options, link fleet.Link) fleet.RemoteSubscription {
	s := newSubscription(o, link)
	if err := p.begin(to, s); err != nil {
		link.Closed(err)
	}
	return s
}

// begin runs a subscription.
func (p *Peers) begin(to fleet.Member, s *remoteSubscription) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.connect(to)
	if err != nil {
		return err
	}
	n.uses++
	p.wg.Go(func() {
		s.run(p.ctx, n.queue)
		p.mu.Lock()
		defer p.mu.Unlock()
		n.uses--
		if !p.closed {
			p.tidy(n)
		}
	})
	return nil
}

// Describe asks a node how it fares.
func (p *Peers) Describe(ctx context.Context, to fleet.Member, q fleet.StatusQuery) (fleet.PeerStatus, error) {
	n, err := p.node(to)
	if err != nil {
		return fleet.PeerStatus{}, err
	}
	r, err := n.peer.DescribePeer(ctx, &ddqv1.DescribePeerRequest{DueSoon: q.DueSoon, Pulses: q.Pulses})
	if err != nil {
		return fleet.PeerStatus{}, failureOf(to, err)
	}
	return statusOf(r), nil
}

// Workers asks a node for workers that are connected to it.
func (p *Peers) Workers(ctx context.Context, to fleet.Member, q fleet.WorkersQuery) ([]fleet.Worker, error) {
	n, err := p.node(to)
	if err != nil {
		return nil, err
	}
	r, err := n.peer.ListPeerWorkers(ctx, &ddqv1.ListPeerWorkersRequest{
		Topic: q.Topic, Namespace: q.Scope, AfterTopic: q.After.Topic, AfterNumber: q.After.Number, Most: int32(q.Most), //nolint:gosec // it is a page at the most
	})
	if err != nil {
		return nil, failureOf(to, err)
	}
	return workersOf(r), nil
}

// Drain makes a node give up its shards, or take shards again.
func (p *Peers) Drain(ctx context.Context, to fleet.Member, draining bool) error {
	n, err := p.node(to)
	if err == nil {
		_, err = n.peer.DrainPeer(ctx, &ddqv1.DrainPeerRequest{Draining: draining})
	}
	return failureOf(to, err)
}

// Release makes a node give up a shard.
func (p *Peers) Release(ctx context.Context, to fleet.Member, s store.Shard) error {
	n, err := p.node(to)
	if err == nil {
		_, err = n.peer.ReleasePeerShard(ctx, &ddqv1.ReleasePeerShardRequest{Topic: s.Topic, Shard: int32(s.N)})
	}
	return failureOf(to, err)
}
