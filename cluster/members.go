package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// leaveFor is how long a node that leaves waits for others to hear of it.
const leaveFor = 2 * time.Second

// Members is this node's part in the fleet, from Start to Leave. It owns the
// library's goroutines, one that follows its members, and one that finds them
// again. Its methods are safe for
// concurrent use.
type Members struct {
	config  Config
	log     *slog.Logger
	metrics *metrics
	list    *memberlist.Memberlist
	keyring *memberlist.Keyring
	stale   chan struct{} // has a value when the library's members changed
	changed chan struct{}
	nodes   atomic.Pointer[[]Node]

	mu     sync.Mutex
	self   Node                 // guarded by mu
	peers  map[string]peer      // who is there, by name, this node included; guarded by mu
	seen   map[string]time.Time // address -> when a member was last there; guarded by mu
	refuse map[string]string    // name -> why, so that each is logged once; guarded by mu
	left   bool                 // guarded by mu

	cancel context.CancelFunc
	done   sync.WaitGroup
}

// peer is what the library says of a member. Its own record changes under readers,
// so this is copied when it calls.
type peer struct {
	addr string // of its gossip
	meta []byte
}

// Start makes this process a member, in state Joining: nobody gives it shards
// before SetState says Active. It returns once the first attempt to join is over;
// that it reached nobody is not an error. Metrics go to reg, which may be nil.
func Start(ctx context.Context, c Config, log *slog.Logger, reg Registerer) (*Members, error) {
	c = c.withDefaults()
	settings, err := c.list()
	if err != nil {
		return nil, err
	}
	if _, err := c.Node.encode(); err != nil {
		return nil, err
	}
	m := &Members{
		config:  c,
		log:     log,
		metrics: newMetrics(reg),
		keyring: settings.Keyring,
		stale:   make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
		self:    c.Node,
		peers:   make(map[string]peer),
		seen:    make(map[string]time.Time),
		refuse:  make(map[string]string),
	}
	m.nodes.Store(&[]Node{c.Node})
	events := &events{m}
	settings.Delegate, settings.Events, settings.Alive, settings.Conflict = events, events, events, events
	settings.Logger = quietLog(log)
	if m.list, err = memberlist.Create(settings); err != nil {
		return nil, fmt.Errorf("gossip at %s: %w", c.Addr, err)
	}
	run, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	if found := m.join(ctx, c.Join); len(c.Join) > 0 && found == 0 {
		log.Warn("no other node reached yet", "join", strings.Join(c.Join, ","))
	}
	m.look()
	m.done.Go(func() { m.follow(run) })
	m.done.Go(func() { m.rejoin(run) })
	return m, nil
}

// Addr is where this node gossips.
func (m *Members) Addr() string { return m.list.LocalNode().Address() }

// Self describes this node.
func (m *Members) Self() Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self
}

// Nodes returns the members by name, this one included. The slice is shared and
// must not be changed.
func (m *Members) Nodes() []Node { return *m.nodes.Load() }

// Changed has a value when Nodes may have changed since it was received from.
func (m *Members) Changed() <-chan struct{} { return m.changed }

// SetState tells the others whether this node wants shards. It does not wait for
// them to hear of it.
func (m *Members) SetState(s State) error {
	m.mu.Lock()
	m.self.State = s
	left := m.left
	m.mu.Unlock()
	if left {
		return errors.New("this node has left the fleet")
	}
	m.look()
	// The wait would be for every member; gossip goes on without it.
	if err := m.list.UpdateNode(0); err != nil && !strings.Contains(err.Error(), "timeout") {
		return fmt.Errorf("announce state: %w", err)
	}
	return nil
}

// UseKeys makes the first key the one to send with, and all of them good to
// receive: a new key is added everywhere as the second one, then made the first
// everywhere, and then the old one is left out.
func (m *Members) UseKeys(texts []string) error {
	keys, err := decodeKeys(texts)
	switch {
	case err != nil:
		return err
	case m.keyring == nil:
		return errors.New("gossip was started without keys: nodes without any would not be heard")
	case len(keys) == 0:
		return errors.New("no gossip key given")
	}
	for _, key := range keys {
		if err := m.keyring.AddKey(key); err != nil {
			return fmt.Errorf("add gossip key: %w", err)
		}
	}
	if err := m.keyring.UseKey(keys[0]); err != nil {
		return fmt.Errorf("use gossip key: %w", err)
	}
	for _, old := range m.keyring.GetKeys() {
		if !slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, old) }) {
			if err := m.keyring.RemoveKey(old); err != nil {
				return fmt.Errorf("remove gossip key: %w", err)
			}
		}
	}
	return nil
}

// Leave says goodbye and ends everything. Others stop looking for this node at
// once. It may be called twice.
func (m *Members) Leave(ctx context.Context) error {
	m.mu.Lock()
	left := m.left
	m.left = true
	m.mu.Unlock()
	if left {
		return nil
	}
	m.cancel()
	wait := leaveFor
	if deadline, ok := ctx.Deadline(); ok {
		wait = max(0, min(wait, time.Until(deadline)))
	}
	err := m.list.Leave(wait)
	err = errors.Join(err, m.list.Shutdown())
	m.done.Wait()
	return err
}

// look takes in who is there.
func (m *Members) look() {
	now, nodes := time.Now(), []Node{}
	m.mu.Lock()
	for name, p := range m.peers {
		m.seen[p.addr] = now
		node, err := decodeNode(name, p.meta)
		switch {
		case name == m.self.Name:
			node = m.self
		case err != nil:
			m.refused(name, err)
			continue
		}
		node.Addr = withHost(node.Addr, p.addr)
		nodes = append(nodes, node)
	}
	m.mu.Unlock()
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	m.nodes.Store(&nodes)
	m.metrics.set(nodes)
	poke(m.changed)
}

// withHost gives an address without a host that of another one.
func withHost(addr, other string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" {
		return addr
	}
	if host, _, err = net.SplitHostPort(other); err != nil {
		return addr
	}
	return net.JoinHostPort(host, port)
}

// follow keeps Nodes up to date until ctx ends.
func (m *Members) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.stale:
			m.look()
		}
	}
}

// poke leaves a sign on c, which has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// refused logs why a node is not a member, once. The caller holds mu.
func (m *Members) refused(name string, err error) {
	if m.refuse[name] == err.Error() {
		return
	}
	m.refuse[name] = err.Error()
	m.log.Warn("node left out", "node", name, "err", err)
}

// events is what the library calls, under its own locks: what calls it back is left
// to follow.
type events struct{ m *Members }

func (e *events) NodeMeta(limit int) []byte {
	self := e.m.Self()
	b, err := self.encode()
	if err != nil || len(b) > limit {
		e.m.log.Error("description of this node does not fit", "err", err)
		return nil
	}
	return b
}

func (e *events) NotifyJoin(n *memberlist.Node) {
	e.m.log.Debug("node joined", "node", n.Name)
	e.m.metrics.joins.Inc()
	e.NotifyUpdate(n)
}

func (e *events) NotifyLeave(n *memberlist.Node) {
	e.m.log.Debug("node left", "node", n.Name)
	e.m.metrics.leaves.Inc()
	e.m.mu.Lock()
	delete(e.m.peers, n.Name)
	e.m.mu.Unlock()
	poke(e.m.stale)
}

func (e *events) NotifyUpdate(n *memberlist.Node) {
	e.m.mu.Lock()
	e.m.peers[n.Name] = peer{n.Address(), bytes.Clone(n.Meta)}
	e.m.mu.Unlock()
	poke(e.m.stale)
}

// NotifyAlive refuses nodes of another protocol.
func (e *events) NotifyAlive(n *memberlist.Node) error {
	if n.Name == e.m.config.Node.Name {
		return nil
	}
	_, err := decodeNode(n.Name, n.Meta)
	if err != nil {
		e.m.mu.Lock()
		defer e.m.mu.Unlock()
		e.m.refused(n.Name, err)
	}
	return err
}

// NotifyConflict says that two nodes have one name. The claims keep them apart.
func (e *events) NotifyConflict(existing, other *memberlist.Node) {
	e.m.metrics.conflicts.Inc()
	e.m.log.Error("two nodes have the same name", "node", existing.Name, "addr", existing.Address(), "other", other.Address())
}

func (e *events) NotifyMsg([]byte)                  {}
func (e *events) GetBroadcasts(int, int) [][]byte   { return nil }
func (e *events) LocalState(bool) []byte            { return nil }
func (e *events) MergeRemoteState(_ []byte, _ bool) {}

// quietLog passes the library's log on at debug level: what matters of it is
// logged here.
func quietLog(l *slog.Logger) *log.Logger {
	return slog.NewLogLogger(l.Handler(), slog.LevelDebug)
}
