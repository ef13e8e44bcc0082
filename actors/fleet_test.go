package actors

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// testFleet is several Systems on one store, with a network between them that a
// test can cut. Everything is in one bubble.
type testFleet struct {
	*testing.T
	store *memstore.Store
	off   map[string]time.Duration // how far the nodes' own clocks are ahead, by name

	mu      sync.Mutex
	nodes   map[string]*testNode
	cut     map[[2]string]bool // from, to: nothing gets through; guarded by mu
	deaf    bool               // no notice gets through; guarded by mu
	notices int                // that got through; guarded by mu
	lag     time.Duration      // of what links deliver; guarded by mu
}

// testNode is one of them. It is its System's Fleet and Peers.
type testNode struct {
	fleet   *testFleet
	name    string
	sys     *System
	store   *gatedStore
	changed chan struct{}

	// Guarded by the fleet's mu.
	gone     bool // no member
	draining bool
	blind    map[string]bool // members that it does not see
	links    []*testLink
}

func fleetBubble(t *testing.T, names []string, test func(t *testing.T, f *testFleet)) {
	synctest.Test(t, func(t *testing.T) {
		f := &testFleet{T: t, store: memstore.New(), nodes: map[string]*testNode{}, cut: map[[2]string]bool{}}
		defer f.stop()
		for _, name := range names {
			f.join(name)
		}
		test(t, f)
	})
}

// join starts a node and makes it a member.
func (f *testFleet) join(name string) *testNode {
	f.Helper()
	n := &testNode{fleet: f, name: name, store: &gatedStore{Store: f.store}, changed: make(chan struct{}, 1), blind: map[string]bool{}}
	n.sys = New(Config{Node: name, Addr: name, Topic: store.Topic{Shards: 12}}, n.store, discard(), nil)
	n.sys.clock.base = n.sys.clock.base.Add(-f.off[name])
	n.sys.Join(n, n)
	f.mu.Lock()
	f.nodes[name] = n
	f.mu.Unlock()
	if err := n.sys.Start(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.tell()
	return n
}

// tell says to every node that members changed.
func (f *testFleet) tell() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.nodes {
		select {
		case n.changed <- struct{}{}:
		default:
		}
	}
}

// edit changes something under mu, and tells the nodes.
func (f *testFleet) edit(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	f.tell()
}

// split cuts the network between two nodes, both ways, and their sight of each other.
func (f *testFleet) split(a, b *testNode, apart bool) {
	f.edit(func() {
		f.cut[[2]string{a.name, b.name}], f.cut[[2]string{b.name, a.name}] = apart, apart
		a.blind[b.name], b.blind[a.name] = apart, apart
		if apart {
			a.breakLinks(b.name)
			b.breakLinks(a.name)
		}
	})
}

// kill makes a node disappear: it reaches neither the store nor the others.
func (f *testFleet) kill(n *testNode) {
	n.store.freeze(true)
	f.edit(func() {
		n.gone = true
		for name, other := range f.nodes {
			f.cut[[2]string{n.name, name}], f.cut[[2]string{name, n.name}] = true, true
			other.breakLinks(n.name)
			n.breakLinks(name)
		}
	})
}

func (f *testFleet) stop() {
	short, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, n := range f.nodes {
		n.store.freeze(false)
	}
	for _, n := range f.nodes {
		n.sys.Stop(short)
	}
	time.Sleep(5 * time.Second) // the actor library's dead-letter throttle ends by itself
}

// owners returns the owner of each shard of a topic, and fails when one has none.
func (f *testFleet) owners(topic string) []string {
	f.Helper()
	synctest.Wait()
	t, err := f.store.GetTopic(f.Context(), topic)
	if err != nil {
		f.Fatal(err)
	}
	stats, err := f.store.Stats(f.Context(), shardsOf(&t))
	if err != nil {
		f.Fatal(err)
	}
	owners := make([]string, len(stats))
	for i, st := range stats {
		owners[i] = st.Owner
	}
	return owners
}

// A node as the Fleet of its System.

func (n *testNode) View() View {
	n.fleet.mu.Lock()
	defer n.fleet.mu.Unlock()
	v := testView{}
	for name, other := range n.fleet.nodes {
		state := MemberActive
		if other.draining {
			state = MemberDraining
		}
		if !other.gone && !n.blind[name] {
			v = append(v, Member{Name: name, Addr: name, State: state})
		}
	}
	slices.SortFunc(v, func(a, b Member) int { return compareShards(store.Shard{Topic: a.Name}, store.Shard{Topic: b.Name}) })
	return v
}

func (n *testNode) Changed() <-chan struct{} { return n.changed }

func (n *testNode) SetDraining(draining bool) error {
	n.fleet.edit(func() { n.draining = draining })
	return nil
}

// testView places by rendezvous hashing.
type testView []Member

func (v testView) Members() []Member { return v }

func (v testView) Owner(s store.Shard) (owner string) {
	best := uint64(0)
	for _, m := range v {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s|%v", m.Name, s)
		sum := h.Sum64() * 0x9E3779B97F4A7C15
		if m.State == MemberActive && sum >= best {
			best, owner = sum, m.Name
		}
	}
	return owner
}

func (v testView) Without(names ...string) View {
	w := slices.Clone(v)
	for i := range w {
		if slices.Contains(names, w[i].Name) {
			w[i].State = MemberDraining
		}
	}
	return w
}

// A node as the Peers of its System.

// reach returns a node unless the way to it is cut.
func (n *testNode) reach(to string) *testNode {
	n.fleet.mu.Lock()
	defer n.fleet.mu.Unlock()
	if n.fleet.cut[[2]string{n.name, to}] {
		return nil
	}
	return n.fleet.nodes[to]
}

func (n *testNode) Notify(to Member, notice Notice) {
	n.fleet.mu.Lock()
	deaf := n.fleet.deaf
	n.fleet.mu.Unlock()
	if other := n.reach(to.Name); other != nil && !deaf {
		n.fleet.mu.Lock()
		n.fleet.notices++
		n.fleet.mu.Unlock()
		other.sys.Notified(notice)
	}
}

func (n *testNode) Keep([]Member) {} // it keeps nothing

func (n *testNode) Describe(ctx context.Context, to Member) (PeerStatus, error) {
	other := n.reach(to.Name)
	if other == nil {
		return PeerStatus{}, errors.New("unreachable")
	}
	return other.sys.DescribePeer(ctx)
}

func (n *testNode) Drain(_ context.Context, to Member, draining bool) error {
	return n.reach(to.Name).sys.DrainPeer(draining)
}

func (n *testNode) Release(ctx context.Context, to Member, s store.Shard) error {
	return n.reach(to.Name).sys.ReleasePeerShard(ctx, s)
}

func (n *testNode) Subscribe(to Member, o SubscribeOptions, l Link) RemoteSubscription {
	link := &testLink{fleet: n.fleet, to: to.Name, Link: l, ready: make(chan struct{})}
	n.fleet.mu.Lock()
	n.links = append(n.links, link)
	n.fleet.mu.Unlock()
	go link.open(n.reach(to.Name), o)
	return link
}

// breakLinks ends the links to a node at once. The caller holds the fleet's mu.
func (n *testNode) breakLinks(to string) {
	for _, l := range n.links {
		if l.to == to {
			go l.end(errors.New("broken"))
		}
	}
}

// testLink is a subscription at another node, and its Outbox there.
type testLink struct {
	Link
	fleet *testFleet
	to    string
	ready chan struct{} // closed once sub is set, or it is over

	mu    sync.Mutex
	sub   *Subscription
	ended bool
}

func (l *testLink) open(at *testNode, o SubscribeOptions) {
	defer close(l.ready)
	if at == nil {
		go l.end(errors.New("unreachable"))
		return
	}
	sub, err := at.sys.Subscribe(context.Background(), o, l)
	if err != nil {
		go l.end(err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sub = sub
	if !l.ended {
		l.Link.Opened()
	}
}

func (l *testLink) Grant(n int) {
	go func() {
		<-l.ready
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.sub != nil && !l.ended {
			_ = l.sub.Grant(n)
		}
	}()
}

func (l *testLink) Close() { go l.end(nil) }

func (l *testLink) end(err error) {
	<-l.ready
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	if l.sub != nil {
		l.sub.Unsubscribe(nil)
	}
	l.Link.Closed(err)
}

func (l *testLink) Deliver(tasks []Delivery) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.fleet.mu.Lock()
	lag := l.fleet.lag
	l.fleet.mu.Unlock()
	if lag == 0 {
		l.Link.Deliver(tasks)
	} else {
		time.AfterFunc(lag, func() { l.Link.Deliver(tasks) })
	}
	return true
}

func (l *testLink) Cancel(asks []CancelAsk) { l.Link.Cancel(asks) }

func (l *testLink) NodesChanged() {}

func (l *testLink) Demand(ready, returned int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.Link.Demand(ready, returned)
	}
}

func (l *testLink) Settled(uint64, []Settled) {}
func (l *testLink) Drain(time.Duration)       { l.Close() }

// gatedStore holds calls back while it is frozen.
type gatedStore struct {
	store.Store
	mu   sync.Mutex
	gate chan struct{} // closed by the thaw; nil when open

	refused int // releases to refuse from now on; guarded by mu
}

// refuse makes the next releases fail.
func (g *gatedStore) refuse(releases int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = releases
}

func (g *gatedStore) freeze(frozen bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case frozen && g.gate == nil:
		g.gate = make(chan struct{})
	case !frozen && g.gate != nil:
		close(g.gate)
		g.gate = nil
	}
}

// pass waits for the thaw. A call that was given up meanwhile does not happen.
func (g *gatedStore) pass(ctx context.Context) error {
	g.mu.Lock()
	gate := g.gate
	g.mu.Unlock()
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gatedStore) RenewSession(ctx context.Context, session store.Session) (time.Time, error) {
	if err := g.pass(ctx); err != nil {
		return time.Time{}, err
	}
	return g.Store.RenewSession(ctx, session)
}

func (g *gatedStore) Hold(ctx context.Context, s store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	if err := g.pass(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	return g.Store.Hold(ctx, s, f, holds)
}

func (g *gatedStore) HoldNew(ctx context.Context, s store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	if err := g.pass(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	return g.Store.HoldNew(ctx, s, f, tasks, holds)
}

func (g *gatedStore) Recover(ctx context.Context, s store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	if err := g.pass(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	return g.Store.Recover(ctx, s, f, nacks)
}

func (g *gatedStore) Claim(ctx context.Context, s store.Shard, session store.Session) (store.Stamp, store.Fence, error) {
	if err := g.pass(ctx); err != nil {
		return store.Stamp{}, store.Fence{}, err
	}
	return g.Store.Claim(ctx, s, session)
}

func (g *gatedStore) Release(ctx context.Context, s store.Shard, f store.Fence) error {
	if err := g.pass(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	refused := g.refused > 0
	if refused {
		g.refused--
	}
	g.mu.Unlock()
	if refused {
		return store.ErrUnavailable
	}
	return g.Store.Release(ctx, s, f)
}

func (g *gatedStore) Window(ctx context.Context, s store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	if err := g.pass(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	return g.Store.Window(ctx, s, w)
}
