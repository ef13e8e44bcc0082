package shard

import (
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// To the topic.
type (
	// BecameReady comes from a shard: tasks that are due, or may be held ahead.
	BecameReady struct {
		Shard int
		Tasks []store.Entry
	}
	// SettledHolds comes from a shard: tasks of a subscription that are no longer held.
	SettledHolds struct {
		Sub int64
		N   int
	}
	// Refunded comes from a shard or a link: assignments and credit that came to nothing.
	Refunded struct {
		Sub     int64
		N       int
		Shard   int
		Counted int // of N, see dispatch.Hold
	}
	// Owned comes from a shard: this node owns it.
	Owned struct{ Shard int }
	// Lost comes from a shard: what it made ready is void, and it is not owned.
	Lost struct {
		Shard int
		Ended bool // so did its actor, which reports nothing more
	}
	// ReadyGone comes from a shard: what it made ready is gone from the store.
	ReadyGone struct{ Shard int }

	// AdmissionsEnded comes from a shard: permits are over with their holds, and others were not held at all.
	AdmissionsEnded struct {
		Permits []*dispatch.Permit
		Unused  []*dispatch.Admission
	}
	// HoldOutcome comes from a shard: what became of tasks that were assigned.
	HoldOutcome struct {
		Shard int
		dispatch.Outcome
	}
)

// To the topic and its shards.
type (
	// Configured comes from the node: the topic's configuration changed.
	Configured struct{ Topic store.Topic }
	// LeaseLost comes from the node: shards are no longer ours until LeaseBack.
	LeaseLost struct{}
	// LeaseBack follows it once the lease is ours again.
	LeaseBack struct{}
	// ClockJumped comes from the node: a clock of the store was set, and what is due soon may
	// be something else than before.
	ClockJumped struct{}
)

// To a shard.
type (
	// AddTasks comes from the topic.
	AddTasks struct{ Items []Addition }
	// HoldTasks comes from the topic.
	HoldTasks struct {
		Sub        *subscription.Subscriber
		Tasks      []store.Entry
		Admissions []*dispatch.Admission // nil: none of them is under limits
		Counted    bool                  // see dispatch.Hold
	}
	// SettleHolds comes from the node and workers: some settlements of a call.
	SettleHolds struct {
		Call  *SettleCall
		Items []int // indexes into the call
	}
	// Forget comes from the topic: the subscription is over; confirm to its worker. A shard
	// that stops or panics instead gives it nothing more either, so that is confirmed.
	Forget struct {
		Runtime *runtime.Runtime
		Sub     *subscription.Subscriber
		Shard   int
	}
	// PendingChanged comes from the node: tasks became pending or moved, by one store call.
	PendingChanged struct {
		Tasks []store.Entry
		Seq   int64
	}
	// Placed comes from the topic and the node: the shard is to look whether this node should
	// own it. Nobody looks in its place: what they saw may be old when it arrives.
	Placed struct {
		Forsaken bool // who should own it is no member: this node claims it
		Told     bool // by another node, that would own it
	}
	// PendingElsewhere comes from the node: a store call of another node made tasks pending.
	PendingElsewhere struct {
		Seq   int64
		Tasks []store.Entry
	}
	// EndedElsewhere comes from the node: another node ended holds.
	EndedElsewhere struct{ Holds []fleet.EndedHold }
	// GoneElsewhere comes from the node: another node says that tasks are no longer there, or have ended.
	GoneElsewhere struct{ Ids []string }

	// WaitedElsewhere comes from the node: another node waits for tasks to be settled.
	WaitedElsewhere struct {
		Ids   []string
		Node  string
		First bool
	}
	// CancelHolds comes from the node and links: the cancellation of tasks was asked for.
	CancelHolds struct{ Holds []fleet.EndedHold }
	// HeldElsewhere comes from a link: the shard's owner holds these for a subscription. It comes
	// once more, in a CallDone, where the store was asked for the shard's clock first.
	// Lost is told instead of them when its actor ended before it heard of that.
	HeldElsewhere struct {
		Sub   *subscription.Subscriber
		Tasks []subscription.Delivery
		Lost  func(tasks []subscription.Delivery)
		heard bool  // the shard counts them
		asked bool  // the store, for its clock
		err   error // of that: nobody knows how long the holds last
	}
	// SeqSeen comes from the node: the seq that the store has, and whether it has no task
	// to deliver or to watch.
	SeqSeen struct {
		Seq     int64
		Held    bool // it has tasks that are held
		Empty   bool
		Cells   int64 // that it has
		Parcels int64 // that it has, in both boxes
		In      int64 // number of the last parcel that its in-box got

		Server uint64 // that says so, see store.Stamp
	}
	// CellsChanged comes from the node: a call changed when cells wake.
	CellsChanged struct {
		Wake store.Millis // of a schedule, if that is all that changed
	}
	// ParcelsHeard comes from the node: the in-box of the shard has come to a number.
	ParcelsHeard struct{ In int64 }
	// HandShard comes from the node: give the shard up, to whoever should own it.
	HandShard struct{}
	// YieldShard comes from the topic: give the shard up to a node that has workers for it, and do
	// not claim it before Placed.
	YieldShard struct{}
	// DescribeShard comes from the node.
	DescribeShard struct {
		Reply chan fleet.OwnedShard
		Due   bool // with what comes due soon
	}
	// PendingGone comes from the node: one store call deleted tasks.
	PendingGone struct {
		Ids []string
		Seq int64
	}
	// LoadTick comes from the node: look ahead into the store.
	LoadTick struct{}
	// WatchTick comes from the node: look for what no timer knows.
	WatchTick struct{}
	// ReleaseShard comes from the node at shutdown and of an idle topic: finish store calls, give
	// up the claim.
	ReleaseShard struct{ Done chan struct{} }
)

// To a worker.
type (
	// Deliver comes from a shard: tasks held for this subscription.
	Deliver struct {
		Shard int
		Tasks []subscription.HeldTask
	}
	// Forgotten says that nothing more comes from a shard. It may come twice.
	Forgotten struct{ Shard int }
	// CancelAsked comes from a shard: of a task that this subscription has.
	CancelAsked struct{ Ask subscription.CancelAsk }
)

// Fail answers that nothing is known of the shard.
func (m *DescribeShard) Fail(*problem.Error) {
	select {
	case m.Reply <- fleet.OwnedShard{}:
	default: // it was answered before the panic
	}
}

func (m *Forget) confirm() { m.Runtime.Send(m.Sub.Worker, &Forgotten{m.Shard}) }

// Fail confirms, too: a shard that stops gives the subscription nothing more either.
func (m *Forget) Fail(*problem.Error) { m.confirm() }

// Fail tells the link. A shard that panics gives the room of what it heard of back itself.
func (m *HeldElsewhere) Fail(*problem.Error) {
	if !m.heard {
		m.Lost(m.Tasks)
	}
}

// Fail refuses the tasks.
func (m *AddTasks) Fail(err *problem.Error) { FailAdditions(m.Items, err) }

// Fail answers the settlements with err.
func (m *SettleHolds) Fail(err *problem.Error) {
	for _, i := range m.Items {
		m.Call.Refuse(i, err)
	}
}
