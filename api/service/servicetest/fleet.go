package servicetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/knobs"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
)

// Fleet is several Systems on one store, with a network between them that a
// test can cut. Everything is in one bubble.
type Fleet struct {
	*testing.T
	Store *memstore.Store
	Off   map[string]time.Duration // how far the nodes' own clocks are ahead, by name; set before Join

	// Horizon is that of the nodes, by name; set before Join.
	Horizon map[string]time.Duration

	// Watchdog is the interval of that of nodes that join from now on; 0: as it is by default.
	Watchdog time.Duration

	// Knobs are those of nodes that join from now on.
	Knobs knobs.Knobs

	// ManyClocks has nodes that join from now on take each shard's clock for one of its own.
	ManyClocks bool

	// Log is where nodes log that join from now on; nil: nowhere.
	Log *slog.Logger

	Mu      sync.Mutex
	Nodes   map[string]*Node
	Cut     map[[2]string]bool // from, to: nothing gets through; guarded by mu
	Deaf    bool               // no notice gets through; guarded by mu
	notices int                // that got through; guarded by mu
	Lag     time.Duration      // of what links deliver; guarded by mu
	Strange bool               // links deliver tasks of a shard that nobody knows; guarded by mu
	past    []*Node            // that were killed, and others of their names are there; guarded by mu

	// Way is how long the next frame of a link waits at who sends it, by the worker that the link is for;
	// nil: no time. Frames of one link and direction stay in order. Guarded by mu, which its caller holds.
	Way func(worker string) time.Duration

	// Unheard is what nodes say over links of ready tasks; guarded by Mu.
	Unheard bool
}

// Node is one of them. It is the Fleet and the Peers of its actors.
type Node struct {
	fleet    *Fleet
	Name     string
	Sys      *service.Service
	Upkeep   *upkeep.Upkeep
	registry *prometheus.Registry
	Store    *gatedStore
	changed  chan struct{}

	// Guarded by the fleet's mu.
	Gone     bool // no member
	dead     bool // another process of its name is there
	draining bool
	Blind    map[string]bool // members that it does not see
	links    []*link
	shown    func(fleet.View) fleet.View // what it sees in place of who is there; nil: that
}

// FleetBubble runs a test on nodes of these names over one in-memory store, in fake time.
func FleetBubble(t *testing.T, names []string, test func(t *testing.T, f *Fleet)) {
	synctest.Test(t, func(t *testing.T) {
		f := &Fleet{T: t, Store: memstore.New(), Nodes: map[string]*Node{}, Cut: map[[2]string]bool{}}
		defer f.stop()
		for _, name := range names {
			f.Join(name)
		}
		synctest.Wait() // until each has heard of all
		test(t, f)
	})
}

// Join starts a node and makes it a member.
func (f *Fleet) Join(name string) *Node {
	f.Helper()
	n := &Node{fleet: f, Name: name, Store: &gatedStore{Store: f.Store, cellStore: f.Store, manyClocks: f.ManyClocks}, registry: prometheus.NewRegistry(), changed: make(chan struct{}, 1), Blind: map[string]bool{}}
	node := actors.New(actors.Config{Node: name, Addr: name, Topic: store.Topic{Shards: 12}, Horizon: f.Horizon[name], WatchdogInterval: f.Watchdog, Knobs: f.Knobs}, n.Store, cmp.Or(f.Log, Discard()), n.registry)
	node.Clock().ShiftBase(-f.Off[name])
	node.Join(n, n)
	n.Upkeep = upkeep.New(node)
	n.Sys = service.New(node, n.Upkeep.IndexNow)
	f.Mu.Lock()
	f.Nodes[name] = n
	f.Mu.Unlock()
	if err := n.Sys.Node().Start(f.Context()); err != nil {
		f.Fatal(err)
	}
	n.Upkeep.Start()
	f.tell()
	return n
}

// tell says to every node that members changed.
func (f *Fleet) tell() {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, n := range f.Nodes {
		select {
		case n.changed <- struct{}{}:
		default:
		}
	}
}

// Edit changes something under mu, and tells the nodes.
func (f *Fleet) Edit(change func()) {
	f.Mu.Lock()
	change()
	f.Mu.Unlock()
	f.tell()
}

// Split cuts the network between two nodes, both ways, and their sight of each other.
func (f *Fleet) Split(a, b *Node, apart bool) {
	f.Edit(func() {
		f.Cut[[2]string{a.Name, b.Name}], f.Cut[[2]string{b.Name, a.Name}] = apart, apart
		a.Blind[b.Name], b.Blind[a.Name] = apart, apart
		if apart {
			a.BreakLinks(b.Name)
			b.BreakLinks(a.Name)
		}
	})
}

// Kill makes a node disappear: it reaches neither the store nor the others.
func (f *Fleet) Kill(n *Node) {
	n.Store.Freeze(true)
	f.Edit(func() {
		n.Gone = true
		for name, other := range f.Nodes {
			f.Cut[[2]string{n.Name, name}], f.Cut[[2]string{name, n.Name}] = true, true
			other.BreakLinks(n.Name)
			n.BreakLinks(name)
		}
	})
}

// Revive starts another process of the name of a node that was killed.
func (f *Fleet) Revive(n *Node) *Node {
	f.Helper()
	f.Edit(func() {
		n.dead, f.past = true, append(f.past, n)
		for name := range f.Nodes {
			delete(f.Cut, [2]string{n.Name, name})
			delete(f.Cut, [2]string{name, n.Name})
		}
	})
	return f.Join(n.Name)
}

func (f *Fleet) stop() {
	short, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	all := append(f.past, slices.Collect(maps.Values(f.Nodes))...)
	for _, n := range all {
		n.Store.Freeze(false)
	}
	for _, n := range all {
		n.Sys.Node().Stop(short)
	}
	time.Sleep(5 * time.Second) // the actor library's dead-letter throttle ends by itself
}

// Owners returns the owner of each shard of a topic, and fails when one has none.
func (f *Fleet) Owners(topic string) []string {
	f.Helper()
	synctest.Wait()
	stats := f.stats(topic)
	owners := make([]string, len(stats))
	for i, st := range stats {
		owners[i] = st.Owner
	}
	return owners
}

// stats are those of the shards of a topic.
func (f *Fleet) stats(topic string) []store.Stats {
	f.Helper()
	t, err := f.Store.GetTopic(f.Context(), topic)
	if err != nil {
		f.Fatal(err)
	}
	stats, err := f.Store.Stats(f.Context(), place.Shards(&t))
	if err != nil {
		f.Fatal(err)
	}
	return stats
}

// Show has the node see something else than who is there, from now on; nil: see that again.
// Its actors are told nothing of that.
func (n *Node) Show(shown func(fleet.View) fleet.View) {
	n.fleet.Mu.Lock()
	n.shown = shown
	n.fleet.Mu.Unlock()
	n.Sys.Node().Membership().Update()
}

func (n *Node) View() fleet.View {
	n.fleet.Mu.Lock()
	defer n.fleet.Mu.Unlock()
	v := view{}
	for name, other := range n.fleet.Nodes {
		state := fleet.MemberActive
		if other.draining {
			state = fleet.MemberDraining
		}
		if !other.Gone && !n.Blind[name] {
			v = append(v, fleet.Member{Name: name, Addr: name, State: state})
		}
	}
	slices.SortFunc(v, func(a, b fleet.Member) int {
		return place.Compare(store.Shard{Topic: a.Name}, store.Shard{Topic: b.Name})
	})
	if n.shown != nil {
		return n.shown(v)
	}
	return v
}

func (n *Node) Changed() <-chan struct{} { return n.changed }

func (n *Node) SetDraining(draining bool) error {
	n.fleet.Edit(func() { n.draining = draining })
	return nil
}

// view places by rendezvous hashing.
type view []fleet.Member

func (v view) Members() []fleet.Member { return v }

func (v view) Owner(s store.Shard) (owner string) {
	best := uint64(0)
	for _, m := range v {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s|%v", m.Name, s)
		sum := h.Sum64() * 0x9E3779B97F4A7C15
		if m.State == fleet.MemberActive && sum >= best {
			best, owner = sum, m.Name
		}
	}
	return owner
}

func (v view) Without(names ...string) fleet.View {
	w := slices.Clone(v)
	for i := range w {
		if slices.Contains(names, w[i].Name) {
			w[i].State = fleet.MemberDraining
		}
	}
	return w
}

// reach returns a node unless the way to it is cut.
func (n *Node) reach(to string) *Node {
	n.fleet.Mu.Lock()
	defer n.fleet.Mu.Unlock()
	if n.dead || n.fleet.Cut[[2]string{n.Name, to}] {
		return nil
	}
	return n.fleet.Nodes[to]
}

func (n *Node) Notify(to fleet.Member, notice fleet.Notice) {
	n.fleet.Mu.Lock()
	deaf := n.fleet.Deaf
	n.fleet.Mu.Unlock()
	if other := n.reach(to.Name); other != nil && !deaf {
		n.fleet.Mu.Lock()
		n.fleet.notices++
		n.fleet.Mu.Unlock()
		other.Sys.Node().Peer().Notified(notice)
	}
}

func (n *Node) Keep([]fleet.Member) {}

func (n *Node) Describe(ctx context.Context, to fleet.Member, q fleet.StatusQuery) (fleet.PeerStatus, error) {
	other := n.reach(to.Name)
	if other == nil {
		return fleet.PeerStatus{}, errors.New("unreachable")
	}
	return other.Sys.Node().Peer().Describe(ctx, q)
}

func (n *Node) Workers(ctx context.Context, to fleet.Member, q fleet.WorkersQuery) ([]fleet.Worker, error) {
	other := n.reach(to.Name)
	if other == nil {
		return nil, errors.New("unreachable")
	}
	return other.Sys.Node().Peer().Workers(ctx, q)
}

func (n *Node) Drain(_ context.Context, to fleet.Member, draining bool) error {
	return n.reach(to.Name).Sys.Node().Peer().Drain(draining)
}

func (n *Node) SetLogLevel(_ context.Context, to fleet.Member, l fleet.LogLevel) (time.Time, error) {
	return n.reach(to.Name).Sys.Node().Peer().SetLogLevel(l)
}

// Audit finds nothing: nodes of tests write nothing down.
func (n *Node) Audit(context.Context, fleet.Member, fleet.AuditQuery) (fleet.AuditPage, error) {
	return fleet.AuditPage{None: true}, nil
}

func (n *Node) VerifyAudit(context.Context, fleet.Member) (fleet.AuditChain, error) {
	return fleet.AuditChain{State: fleet.AuditNone}, nil
}

func (n *Node) Release(ctx context.Context, to fleet.Member, s store.Shard) error {
	return n.reach(to.Name).Sys.Node().Peer().ReleaseShard(ctx, s)
}

// Refuse makes the next releases fail.
func (g *gatedStore) Refuse(releases int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = releases
}

func (g *gatedStore) Freeze(frozen bool) {
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

func (g *gatedStore) Info(ctx context.Context) (store.Info, error) {
	info, err := g.Store.Info(ctx)
	info.ManyClocks = g.manyClocks
	return info, err
}

func (g *gatedStore) Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	if g.NoCounts.Load() {
		return nil, store.ErrUnavailable
	}
	return g.Store.Counts(ctx, shards)
}

func (g *gatedStore) RenewSession(ctx context.Context, session store.Session) (store.Renewal, error) {
	if err := g.pass(ctx); err != nil {
		return store.Renewal{}, err
	}
	return g.Store.RenewSession(ctx, session)
}

func (g *gatedStore) Hold(ctx context.Context, s store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	if err := g.pass(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	return faulty(g, store.ErrUnknown, func() (store.Stamp, []store.HoldResult, error) { return g.Store.Hold(ctx, s, f, holds) })
}

func (g *gatedStore) HoldNew(ctx context.Context, s store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	if err := g.pass(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	return faulty(g, store.ErrUnknown, func() (store.Stamp, []store.AddResult, error) { return g.Store.HoldNew(ctx, s, f, tasks, holds) })
}

func (g *gatedStore) Recover(ctx context.Context, s store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	if err := g.pass(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	return faulty(g, store.ErrUnknown, func() (store.Stamp, []store.NackResult, error) { return g.Store.Recover(ctx, s, f, nacks) })
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
	return faulty(g, store.ErrUnavailable, func() (store.Stamp, []store.Entry, error) { return g.Store.Window(ctx, s, w) })
}
