package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/store"
)

// View is who is there now; nil when the node stands alone.
func (f *Membership) View() View {
	if v := f.view.Load(); v != nil {
		return v
	}
	return nil
}

// Alone reports whether there can be no other node.
func (f *Membership) Alone() bool { return f.source == nil }

// Changed has a value when the view may have changed since it was received from. The node
// must not stand alone.
func (f *Membership) Changed() <-chan struct{} { return f.source.Changed() }

// Peers reaches the other nodes.
func (f *Membership) Peers() Peers { return f.peers }

// Suspect is when notices of other nodes may have been lost, in Unix nanoseconds.
func (f *Membership) Suspect() int64 { return f.suspect.Load() }

// Membership is what the actors of a node know of the other nodes: the last view, and
// how to reach them. It is safe for concurrent use once the node has started.
type Membership struct {
	self   string
	source Fleet // nil on a node that stands alone
	peers  Peers
	view   atomic.Pointer[snapshot]

	addr    atomic.Pointer[string] // where this node is reached; nil: it was not said
	suspect atomic.Int64           // when notices may have been lost, in Unix nanoseconds

	mu      sync.Mutex
	drained bool                 // this node was asked to own nothing, or stops; guarded by mu
	absent  bool                 // it has not reached the store for long; guarded by mu
	unseen  map[string]time.Time // when nodes that are no members were last known to live; guarded by mu
}

// NewMembership is that of a node which stands alone until it joins a fleet.
func NewMembership(self string) *Membership {
	return &Membership{self: self, unseen: make(map[string]time.Time)}
}

// Join makes the node one of a fleet.
func (f *Membership) Join(source Fleet, peers Peers) { f.source, f.peers = source, peers }

// SetAddr says where this node is reached, once that is known: with port 0 it is not before the
// port is open.
func (f *Membership) SetAddr(addr string) { f.addr.Store(&addr) }

// Self is this node as the one member of a fleet.
func (f *Membership) Self() Member {
	m := Member{Name: f.self, State: MemberActive}
	if addr := f.addr.Load(); addr != nil {
		m.Addr = *addr
	}
	return m
}

// NoteLoss records that notices of other nodes may have been lost.
func (f *Membership) NoteLoss() { f.suspect.Store(time.Now().UnixNano()) }

// SetDrained tells the others whether this node was asked to own nothing.
func (f *Membership) SetDrained(drained bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drained = drained
	return f.source.SetDraining(f.drained || f.absent)
}

// SetAbsent tells the others whether this node could serve what it owns.
func (f *Membership) SetAbsent(absent bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.source == nil || f.absent == absent {
		return nil
	}
	f.absent = absent
	return f.source.SetDraining(f.drained || f.absent)
}

// snapshot is a view and what is asked of it most.
type snapshot struct {
	View
	others []Member
	byName map[string]Member
	queues bool // all members read outbox queues
}

// Update goes by the current view from now on.
func (f *Membership) Update() {
	if f.source == nil {
		return
	}
	v := &snapshot{View: f.source.View(), byName: make(map[string]Member), queues: true}
	for _, m := range v.Members() {
		v.byName[m.Name], v.queues = m, v.queues && !m.NoQueues
		if m.Name != f.self {
			v.others = append(v.others, m)
		}
	}
	f.view.Store(v)
	f.peers.Keep(v.others)
}

// ReadQueues reports whether all members read outbox queues. A shard that has something in one is claimed by no
// other node.
func (f *Membership) ReadQueues() bool {
	v := f.view.Load()
	return v == nil || v.queues
}

// Others are the members but for this node.
func (f *Membership) Others() []Member {
	if v := f.view.Load(); v != nil {
		return v.others
	}
	return nil
}

// Owns reports whether this node should own a shard.
func (f *Membership) Owns(s store.Shard) bool {
	v := f.view.Load()
	return v == nil || v.Owner(s) == f.self
}

// Placed reports whether a member of the fleet should own a shard.
func (f *Membership) Placed(s store.Shard) bool {
	v := f.view.Load()
	if v == nil {
		return true
	}
	_, there := v.byName[v.Owner(s)]
	return there
}

// Member returns a member by name.
func (f *Membership) Member(name string) (Member, bool) {
	v := f.view.Load()
	if v == nil {
		return Member{}, false
	}
	m, ok := v.byName[name]
	return m, ok
}

// Notify tells another node something.
func (f *Membership) Notify(node string, n Notice) {
	if m, ok := f.Member(node); ok && node != f.self {
		f.peers.Notify(m, n)
	}
}

// NotifyOwner tells the node that should own a shard, unless it is this one.
func (f *Membership) NotifyOwner(s store.Shard, n Notice) {
	v := f.view.Load()
	if v == nil {
		return
	}
	if m, ok := v.byName[v.Owner(s)]; ok && m.Name != f.self {
		f.peers.Notify(m, n)
	}
}

// unseenFor is how long it counts that a node was known to live. It is noted again every few
// seconds.
const unseenFor = 15 * time.Second

// NoteUnseen records that a node lives, by what the store says, and reports whether it is news
// that it is no member.
func (f *Membership) NoteUnseen(node string) (news bool) {
	if _, member := f.Member(node); member || node == f.self || node == "" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	news = now.Sub(f.unseen[node]) > unseenFor
	f.unseen[node] = now
	return news
}

// Unseen names nodes that live and are no members, as far as this node knows.
func (f *Membership) Unseen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.unseen, func(node string, at time.Time) bool {
		_, member := f.Member(node)
		return member || time.Since(at) > unseenFor
	})
	return slices.Sorted(maps.Keys(f.unseen))
}

// UnseenText says which nodes are not seen, and what to do about it; empty when there are none.
func (f *Membership) UnseenText() string {
	unseen := f.Unseen()
	if len(unseen) == 0 {
		return ""
	}
	return fmt.Sprintf("gossip does not show %s to %s, though they use one store: each side delivers what it has workers for; open the gossip port between them (--gossip-addr, --join)",
		strings.Join(unseen, ", "), f.self)
}

// NotifyOthers tells every other node something.
func (f *Membership) NotifyOthers(n Notice) {
	for _, m := range f.Others() {
		f.peers.Notify(m, n)
	}
}
