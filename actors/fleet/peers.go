package fleet

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/pulse"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/zones"
)

// MemberState says whether a member of the fleet may own shards.
type MemberState uint8

// Only active members own shards.
const (
	MemberJoining MemberState = iota + 1
	MemberActive
	MemberDraining
)

// Member is one node of the fleet.
type Member struct {
	Name     string
	Addr     string // of its gRPC port
	Zone     string
	Version  string
	State    MemberState
	Old      bool        // its program tells no schedule and no workflow of the ends of tasks
	NoQueues bool        // its program reads no outbox queues
	Rules    zones.Rules // of its time zones; 0 while they are not known, and of a program of before

	// Hosts are the addresses that its calls come from, as far as gossip knows them.
	Hosts []netip.Addr
}

// CallsFrom reports whether a call from an address may be the member's. A machine
// reaches itself over any of its loopback addresses.
func (m *Member) CallsFrom(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(m.Hosts, func(h netip.Addr) bool {
		return h == addr || h.IsLoopback() && addr.IsLoopback()
	})
}

// OldMember names a member that does not tell of the ends of tasks; empty when all do, and
// without a view.
func OldMember(v View) string {
	if v == nil {
		return ""
	}
	for _, m := range v.Members() {
		if m.Old {
			return m.Name
		}
	}
	return ""
}

// View is who is there at one moment. It does not change.
type View interface {
	// Members returns all members by name, this node included.
	Members() []Member
	// Owner names the member that should own a shard; empty when none may.
	Owner(s store.Shard) string
	// Without is the view if members of these names were draining.
	Without(names ...string) View
}

// Fleet tells a node who else is there. What it says is a hint: who does own a
// shard stands in the store.
type Fleet interface {
	View() View
	// Changed has a value when the view may have changed since it was received from.
	Changed() <-chan struct{}
	// SetDraining tells the others that this node wants no shards, or wants them again.
	SetDraining(draining bool) error
}

// Peers reaches the other nodes. Its methods are safe for concurrent use. Those
// without a context do not wait.
type Peers interface {
	// Notify passes hints on to a node. They are lost when it cannot be reached, or
	// cannot keep up.
	Notify(to Member, n Notice)
	// Subscribe opens a subscription to the shards that a node owns, with credit on
	// demand. When it cannot, link.Closed says so, now or later.
	Subscribe(to Member, o subscription.Options, link Link) RemoteSubscription
	// Keep says who the other members are. What is kept for nodes that are none,
	// such as connections, is given up.
	Keep(others []Member)
	// Describe asks a node how it fares.
	Describe(ctx context.Context, to Member, q StatusQuery) (PeerStatus, error)
	// Workers asks a node for workers that are connected to it.
	Workers(ctx context.Context, to Member, q WorkersQuery) ([]Worker, error)
	// Drain makes a node give up its shards, or take shards again.
	Drain(ctx context.Context, to Member, draining bool) error
	// SetLogLevel makes a node log more or less for a while, and returns until when.
	SetLogLevel(ctx context.Context, to Member, l LogLevel) (time.Time, error)
	// Audit asks a node for lines of its audit log.
	Audit(ctx context.Context, to Member, q AuditQuery) (AuditPage, error)
	// VerifyAudit asks a node whether its audit log is as it was written.
	VerifyAudit(ctx context.Context, to Member) (AuditChain, error)
	// Release makes a node give up a shard.
	Release(ctx context.Context, to Member, s store.Shard) error
}

// RemoteSubscription is a subscription at another node. Its methods do not wait.
type RemoteSubscription interface {
	// Grant gives credit for n deliveries.
	Grant(n int)
	// Close ends it once, in order: what was held for it meanwhile still comes,
	// before Link.Closed.
	Close()
}

// Link is what a RemoteSubscription calls, from one goroutine at a time. The
// methods do not block, but for Await.
type Link interface {
	// Await returns once the worker has room for more bodies, or with ctx. It comes
	// before more is read: what a worker does not read stays at the other node.
	Await(ctx context.Context)
	// Opened comes first, unless Closed does.
	Opened()
	// Deliver takes tasks that the other node holds for this subscription.
	Deliver(tasks []subscription.Delivery)
	// Demand says how many tasks are ready there without credit, and how much
	// credit came back unused.
	Demand(ready, returned int)
	// Cancel says that the cancellation of tasks was asked for.
	Cancel(asks []subscription.CancelAsk)
	// Closed comes last.
	Closed(err error)
}

// Notice is what nodes tell each other about shards of the receiver.
type Notice struct {
	Pending  []PendingNotice
	Ended    []EndedNotice
	Released []store.Shard // may be claimed
	Freed    []FreedNotice
	Waiting  []WaitingNotice
	Settled  []SettledNotice
	Cancels  []CancelNotice
}

// FreedNotice says that permits of caps and tokens of rates that the receiver waits for may be free.
type FreedNotice struct {
	Topic    string
	Keys     []string // of caps; empty: the topic's own, store.NamespaceCap: that of its namespace
	RateKeys []string // of rates; empty: the topic's own
}

// PendingNotice says that one store call made tasks pending.
type PendingNotice struct {
	Shard store.Shard
	Seq   int64         // of the shard after the call
	Tasks []store.Entry // those due soon, and the first of the others
}

// EndedNotice says that holds ended. Without any it says that a call changed a cell.
type EndedNotice struct {
	Shard store.Shard
	Holds []EndedHold
}

// WaitingNotice says that a node wants to be told, for a few seconds, when tasks are
// settled.
type WaitingNotice struct {
	Shard store.Shard
	IDs   []string
	Node  string
	First bool // not said before: what is not known to be pending or held may be settled
}

// SettledNotice says that tasks may be settled.
type SettledNotice struct {
	Shard store.Shard
	IDs   []string
}

// CancelNotice says that the cancellation of held tasks was asked for.
type CancelNotice struct {
	Shard store.Shard
	Holds []EndedHold
}

// EndedHold is one hold that ended.
type EndedHold struct {
	ID    string
	Token store.Token
}

// StatusQuery asks a node how it fares.
type StatusQuery struct {
	DueSoon bool     // with what comes due soon
	Pulses  []string // topics of which it says what it did of late
}

// PeerStatus is how a node fares.
type PeerStatus struct {
	Node          string
	Uptime        time.Duration
	ClockOffset   time.Duration // of the store's clock from the node's
	Shards        []OwnedShard
	Subscriptions int

	// Pulses are of the topics that were asked for, where the node did anything within the hour.
	Pulses           map[string]*pulse.Report
	PulsesIncomplete bool // it did more, in more topics than it counts

	Logs *Logs // nil of a node of before
}

// OwnedShard is a shard as its owner sees it.
type OwnedShard struct {
	store.Shard
	Epoch    int64
	Wheel    int           // tasks due soon
	Ready    int           // tasks due and not held
	Held     int           // tasks held
	Lateness time.Duration // of the oldest ready task
	DueSoon  DueSoon       // when Describe was asked for it
}
