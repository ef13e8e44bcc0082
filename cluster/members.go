package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// Members is this node's part in the fleet, from Start to Leave or Close. It owns
// the library's goroutines, one that follows its members, and those that find them
// again. Its methods are safe for concurrent use.
type Members struct {
	config  Config
	log     *slog.Logger
	metrics *metrics
	list    *memberlist.Memberlist
	keyring *memberlist.Keyring
	stale   chan struct{} // has a value when the library's members changed
	repeat  chan struct{} // has a value when this node shall describe itself again
	changed chan struct{}
	nodes   atomic.Pointer[[]Node]

	mu     sync.Mutex
	self   Node              // guarded by mu
	peers  map[string]peer   // who is there, by name, this node included; guarded by mu
	seen   map[string]sight  // members of the last day, by name; guarded by mu
	refuse map[string]string // name -> why, so that each is logged once; guarded by mu
	rivals map[string]bool   // gossip addresses of other nodes of this name; guarded by mu

	announce sync.Mutex // descriptions go out in the order in which they were made
	end      sync.Mutex // held by Leave and Close until everything is gone
	left     bool       // guarded by end

	run    context.Context // until Leave or Close
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// peer is what the library says of a member. Its own record changes under readers,
// so this is copied when it calls.
type peer struct {
	addr string // of its gossip
	meta []byte
}

// sight is where and when a member was last there.
type sight struct {
	addr string
	at   time.Time
}

// Start makes this process a member, in state Joining: nobody gives it shards
// before SetState says Active. It returns once the first attempt to join is over;
// that it reached nobody is not an error. It fails with ErrNameTaken when another
// node of that name answers. Metrics go to reg, which may be nil.
func Start(ctx context.Context, c Config, log *slog.Logger, reg Registerer) (*Members, error) {
	c = c.withDefaults()
	settings, err := c.list()
	if err != nil {
		return nil, err
	}
	if _, err := c.Node.encode(); err != nil {
		return nil, err
	}
	if c.Transport == nil {
		addrs, err := net.InterfaceAddrs()
		if err != nil {
			log.Warn("addresses of this machine not known; its calls must come from the address of its gossip", "err", err)
		}
		c.Node.tellHosts(addrs)
	}
	m := &Members{
		config:  c,
		log:     log,
		metrics: newMetrics(reg),
		keyring: settings.Keyring,
		stale:   make(chan struct{}, 1),
		repeat:  make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
		self:    c.Node,
		peers:   make(map[string]peer),
		seen:    make(map[string]sight),
		refuse:  make(map[string]string),
		rivals:  make(map[string]bool),
	}
	m.nodes.Store(&[]Node{c.Node})
	m.metrics.set(m.Nodes())
	m.run, m.cancel = context.WithCancel(context.Background())
	events := &events{m}
	settings.Delegate, settings.Events, settings.Alive, settings.Conflict = events, events, events, events
	settings.Logger = newLibraryLog(log)
	if m.list, err = create(settings); err != nil {
		m.cancel()
		return nil, fmt.Errorf("gossip at %s: %w", c.Addr, err)
	}
	if found := m.join(ctx, m.missing(ctx)); found == 0 && m.joinsOthers(ctx) {
		log.Warn("no other node reached yet", "join", strings.Join(c.Join, ","))
	}
	if rival := m.rival(); rival != "" {
		return nil, errors.Join(fmt.Errorf("%w: %q, at %s", ErrNameTaken, c.Node.Name, rival), m.Close())
	}
	m.look()
	m.done.Go(func() { m.follow(m.run) })
	m.done.Go(func() { m.rejoin(m.run) })
	return m, nil
}

// create begins to gossip, within the bounds of a transport.
func create(settings *memberlist.Config) (*memberlist.Memberlist, error) {
	if settings.Transport == nil {
		t, err := listenAt(settings, settings.Logger)
		if err != nil {
			return nil, err
		}
		settings.Transport = t
	}
	t := newTransport(settings.Transport)
	settings.Transport = t
	list, err := memberlist.Create(settings)
	if err != nil {
		return nil, errors.Join(err, t.Shutdown())
	}
	return list, nil
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
	return m.tell(func(self *Node) { self.State = s })
}

// SetRules tells the others a digest of the rules of this node's time zones. It does not
// wait for them to hear of it, and fails when there is no room for it.
func (m *Members) SetRules(rules uint64) error {
	if m.Self().Rules == rules {
		return nil
	}
	return m.tell(func(self *Node) { self.Rules = rules })
}

// tell changes what this node tells the others of itself.
func (m *Members) tell(change func(self *Node)) error {
	m.announce.Lock()
	defer m.announce.Unlock()
	if m.run.Err() != nil {
		return errors.New("this node has left the fleet")
	}
	self := m.Self()
	change(&self)
	if _, err := self.encode(); err != nil {
		return err // it would be no member any more
	}
	m.mu.Lock()
	m.self = self
	m.mu.Unlock()
	m.look()
	defer poke(m.repeat)
	return m.describe()
}

// describe tells the others what NodeMeta says. The caller holds announce.
func (m *Members) describe() error {
	// The wait would be for packets to many members, and without an end when the
	// node leaves meanwhile; 0 is for ever. Gossip goes on by itself.
	if err := m.list.UpdateNode(time.Nanosecond); err != nil && !strings.Contains(err.Error(), "timeout") {
		return fmt.Errorf("announce state: %w", err)
	}
	return nil
}

// UseKeys makes the first key the one to send with, and all of them good to
// receive: a new key is added everywhere as the second one, then made the first
// everywhere, and then the old one is left out. On an error the keys are as before.
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
	m.announce.Lock()
	defer m.announce.Unlock()
	return exchangeKeys(m.keyring, keys)
}

// exchangeKeys makes keys what is on the ring. The library removes a key in place,
// under those who read, unless it is the last: so they go from the end.
func exchangeKeys(ring *memberlist.Keyring, keys [][]byte) error {
	var errs error
	add := func(key []byte) { errs = errors.Join(errs, ring.AddKey(key)) }
	for _, key := range keys {
		add(key)
	}
	errs = errors.Join(errs, ring.UseKey(keys[0]))
	all := slices.Clone(ring.GetKeys())
	kept := func(key []byte) bool {
		return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
	}
	if errs != nil || !slices.ContainsFunc(all, func(key []byte) bool { return !kept(key) }) {
		return errs
	}
	for _, old := range slices.Backward(all[1:]) {
		errs = errors.Join(errs, ring.RemoveKey(old))
	}
	for _, key := range keys {
		add(key)
	}
	return errs
}

// Leave says goodbye and ends everything. Others stop looking for this node at
// once. When ctx ends it goes without waiting for them to hear. It may be called
// twice, and after Close.
func (m *Members) Leave(ctx context.Context) error {
	m.end.Lock()
	defer m.end.Unlock()
	if m.left {
		return nil
	}
	wait := leaveFor
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	if ctx.Err() != nil || wait <= 0 {
		wait = time.Millisecond // 0 is for ever
	}
	m.cancel()
	err := m.list.Leave(wait)
	if err != nil && strings.Contains(err.Error(), "timeout") {
		m.log.Info("left without being heard", "err", err) // others go at the same time, or miss it later
		err = nil
	}
	return errors.Join(err, m.shutdown())
}

// Close ends everything without a word: to the others the node has crashed. It may
// be called twice, and after Leave.
func (m *Members) Close() error {
	m.end.Lock()
	defer m.end.Unlock()
	if m.left {
		return nil
	}
	m.cancel()
	return m.shutdown()
}

// shutdown waits for everything to end. The caller holds end.
func (m *Members) shutdown() error {
	m.left = true
	err := m.list.Shutdown()
	m.done.Wait()
	return err
}

// look records who is there.
func (m *Members) look() {
	now, nodes := time.Now(), []Node{}
	m.mu.Lock()
	defer m.mu.Unlock() // so that an older look does not end after a newer one
	for name, p := range m.peers {
		m.seen[name] = sight{p.addr, now}
		node, err := decodeNode(name, p.meta)
		switch {
		case name == m.self.Name:
			node = m.self
		case err != nil:
			m.refused(name, err)
			continue
		}
		node.Addr, node.Host = withHost(node.Addr, p.addr), hostOf(p.addr)
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	if slices.Equal(nodes, *m.nodes.Load()) {
		return
	}
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

// describeAfter is when a node describes itself again. Gossip passes a description on
// a few times and then forgets it: a node that joins just then takes the older one
// from whom it joins, and would keep it until the next exchange of all state.
const describeAfter = 500 * time.Millisecond

// follow keeps Nodes up to date, and others' view of this node, until ctx ends.
func (m *Members) follow(ctx context.Context) {
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.stale:
			m.look()
		case <-m.repeat:
			again = time.After(describeAfter)
		case <-again:
			m.describeAgain()
		}
	}
}

func (m *Members) describeAgain() {
	m.announce.Lock()
	defer m.announce.Unlock()
	if m.run.Err() != nil {
		return
	}
	if err := m.describe(); err != nil {
		m.log.Warn("others may not know this node's state yet", "err", err)
	}
}

// poke leaves a sign on c, which has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// maxRefused bounds what strangers can make a node remember and log.
const maxRefused = 1000

// refused logs why a node is not a member, once. The caller holds mu.
func (m *Members) refused(name string, err error) {
	if m.refuse[name] == err.Error() || len(m.refuse) >= maxRefused {
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
	poke(e.m.repeat)
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
	node, err := decodeNode(n.Name, n.Meta)
	if err == nil {
		err = e.m.config.Node.understands(&node)
	}
	if err != nil {
		e.m.mu.Lock()
		defer e.m.mu.Unlock()
		e.m.refused(n.Name, err)
	}
	return err
}

func (e *events) NotifyConflict(existing, other *memberlist.Node) {
	e.m.conflict(existing.Name, existing.Address(), other.Address())
}

func (e *events) NotifyMsg([]byte)                  {}
func (e *events) GetBroadcasts(int, int) [][]byte   { return nil }
func (e *events) LocalState(bool) []byte            { return nil }
func (e *events) MergeRemoteState(_ []byte, _ bool) {}
