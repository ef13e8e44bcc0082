package actors

import (
	"sync"
	"sync/atomic"

	"github.com/ddq-io/ddq/store"
)

// fleet is what the actors of a node know of the other nodes: the last view, and
// how to reach them. It is safe for concurrent use once the System has started.
type fleet struct {
	self   string
	source Fleet // nil on a node that stands alone
	peers  Peers
	view   atomic.Pointer[fleetView]

	suspect atomic.Int64 // when notices may have been lost, in Unix nanoseconds

	mu      sync.Mutex
	drained bool // this node was asked to own nothing, or stops; guarded by mu
	absent  bool // it has not reached the store for long; guarded by mu
}

// setDrained tells the others whether this node was asked to own nothing.
func (f *fleet) setDrained(drained bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drained = drained
	return f.source.SetDraining(f.drained || f.absent)
}

// setAbsent tells the others whether this node could serve what it owns.
func (f *fleet) setAbsent(absent bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.source == nil || f.absent == absent {
		return nil
	}
	f.absent = absent
	return f.source.SetDraining(f.drained || f.absent)
}

// fleetView is a view and what is asked of it most.
type fleetView struct {
	View
	others []Member
	byName map[string]Member
}

// update takes in the current view.
func (f *fleet) update() {
	if f.source == nil {
		return
	}
	v := &fleetView{View: f.source.View(), byName: make(map[string]Member)}
	for _, m := range v.Members() {
		v.byName[m.Name] = m
		if m.Name != f.self {
			v.others = append(v.others, m)
		}
	}
	f.view.Store(v)
	f.peers.Keep(v.others)
}

// hasOthers reports whether there may be another node.
func (f *fleet) hasOthers() bool { return f.source != nil }

// others are the members but for this node.
func (f *fleet) others() []Member {
	if v := f.view.Load(); v != nil {
		return v.others
	}
	return nil
}

// owns reports whether this node should own a shard.
func (f *fleet) owns(s store.Shard) bool {
	v := f.view.Load()
	return v == nil || v.Owner(s) == f.self
}

// placed reports whether a member of the fleet should own a shard.
func (f *fleet) placed(s store.Shard) bool {
	v := f.view.Load()
	if v == nil {
		return true
	}
	_, there := v.byName[v.Owner(s)]
	return there
}

// member returns a member by name.
func (f *fleet) member(name string) (Member, bool) {
	v := f.view.Load()
	if v == nil {
		return Member{}, false
	}
	m, ok := v.byName[name]
	return m, ok
}

// notify tells another node something.
func (f *fleet) notify(node string, n Notice) {
	if m, ok := f.member(node); ok && node != f.self {
		f.peers.Notify(m, n)
	}
}

// notifyOwner tells the node that should own a shard, unless it is this one.
func (f *fleet) notifyOwner(s store.Shard, n Notice) {
	v := f.view.Load()
	if v == nil {
		return
	}
	if m, ok := v.byName[v.Owner(s)]; ok && m.Name != f.self {
		f.peers.Notify(m, n)
	}
}
