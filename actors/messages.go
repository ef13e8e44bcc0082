package actors

import (
	"time"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// To the supervisor.
type (
	// openTopic, from the node: start the topic's actor unless it runs.
	openTopic struct {
		topic store.Topic
		reply chan *Topic // buffered
	}
	// closeTopic, from the node: stop the topic's actor.
	closeTopic struct {
		name string
		done chan struct{}
	}
	// tellTopics, from the node: a message for every topic, also those that are being
	// opened: their shards begin with what was true before, or are told.
	tellTopics struct{ message any }
)

// To a topic.
type (
	// AddBatch is sent by use cases: tasks to store, by shard of the topic as it is there.
	AddBatch struct {
		Topic  *store.Topic
		Shards [][]Addition
	}
	// becameReady, from a shard: tasks that are due.
	becameReady struct {
		shard int
		tasks []store.Entry
	}
	// settledHolds, from a shard: tasks of a subscription that are no longer held.
	settledHolds struct {
		sub int64
		n   int
	}
	// refunded, from a shard or a link: assignments and credit that came to nothing.
	refunded struct {
		sub     int64
		n       int
		shard   int
		counted int // of n, see core.count
	}
	// shardOwned, from a shard: this node owns it.
	shardOwned struct{ shard int }
	// shardLost, from a shard: what it made ready is void, and it is not owned.
	shardLost struct {
		shard int
		ended bool // so did its actor, which reports nothing more
	}
	// readyGone, from a shard: what it made ready is gone from the store.
	readyGone struct{ shard int }
	// ViewChanged, from the node: other nodes came or went.
	viewChanged struct{}
	// linkOpened, linkDemand and linkClosed, from a link.
	linkOpened struct{ link *link }
	linkDemand struct {
		link            *link
		ready, returned int
	}
	linkClosed struct {
		link *link
		err  error
	}
	// reopenLink, from the topic itself after a pause.
	reopenLink struct {
		sub  int64
		node string
	}
	// subscribe, from the node.
	subscribe struct {
		options subscription.Options
		out     subscription.Outbox
		reply   chan *subscription.Subscriber // buffered; nil: the topic was closed
	}
	// abandoned, from the node: nobody waits for this subscription any more.
	abandoned struct{ reply chan *subscription.Subscriber }
	// grant and unsubscribe, from a Subscription.
	grant struct {
		sub int64
		n   int
	}
	unsubscribe struct {
		sub         int64
		undelivered []subscription.Delivery
	}
	// drainTopic, from the node: hand out nothing more, tell the subscriptions, and
	// close done once nothing is in flight.
	drainTopic struct {
		grace time.Duration
		done  chan struct{}
		over  bool // done is closed; the topic's
	}
	// countSubscriptions, from the node.
	countSubscriptions struct{ reply chan int }
	// askIdle, from the node: whether nobody subscribes, and nothing is in flight.
	askIdle struct{ reply chan bool } // buffered
	// roomInBytes, from a subscription's budget: more of its tasks may be held.
	roomInBytes struct{}
	// rampOn, from the topic itself after a pause: hand out a little more.
	rampOn struct{}
)

// To a topic and its shards.
type (
	// configured, from the node: the topic's configuration changed.
	configured struct{ topic store.Topic }
	// reshaped, from the node: the topic has other shards now. done is closed when
	// they can be sent to.
	reshaped struct {
		topic store.Topic
		done  chan struct{}
	}
	// leaseLost, from the keeper: shards are no longer ours until leaseBack.
	leaseLost struct{}
	leaseBack struct{}
	// clockJumped, from the node: a clock of the store was set, and what is due soon may
	// be something else than before.
	clockJumped struct{}
)

// To a shard.
type (
	// addTasks, from the topic.
	addTasks struct{ items []Addition }
	// holdTasks, from the topic.
	holdTasks struct {
		sub        *subscription.Subscriber
		tasks      []store.Entry
		admissions []*dispatch.Admission // nil: none of them is under limits
		counted    bool                  // see core.count
	}
	// settleHolds, from the node and workers: some settlements of a call.
	settleHolds struct {
		call  *settleCall
		items []int // indexes into the call
	}
	// forget, from the topic: the subscription is over; confirm to its worker. A shard
	// that stops or panics instead gives it nothing more either, so that is confirmed.
	forget struct {
		rt    *runtime.Runtime
		sub   *subscription.Subscriber
		shard int
	}
	// pendingChanged, from the node: tasks became pending or moved, by one store call.
	pendingChanged struct {
		tasks []store.Entry
		seq   int64
	}
	// placed, from the topic and the node: whether this node should own the shard.
	placed struct {
		wanted bool
		told   bool // by another node, that would own it
	}
	// pendingElsewhere and endedElsewhere, from the node: other nodes' store calls.
	pendingElsewhere struct {
		seq   int64
		tasks []store.Entry
	}
	endedElsewhere struct{ holds []fleet.EndedHold }
	// waitedElsewhere, from the node: another node waits for tasks to be settled.
	waitedElsewhere struct {
		ids   []string
		node  string
		first bool
	}
	// cancelHolds, from the node and links: the cancellation of tasks was asked for.
	cancelHolds struct{ holds []fleet.EndedHold }
	// heldElsewhere, from a link: the shard's owner holds these for a subscription.
	heldElsewhere struct {
		sub   *subscription.Subscriber
		tasks []subscription.Delivery
	}
	// seqSeen, from the node: the seq that the store has, and whether it has no task
	// to deliver or to watch.
	seqSeen struct {
		seq   int64
		empty bool
	}
	// handShard, from the node: give the shard up, to whoever should own it.
	handShard struct{}
	// describeShard, from the node.
	describeShard struct{ reply chan fleet.OwnedShard }
	// pendingGone, from the node: tasks were deleted.
	pendingGone struct{ ids []string }
	// slotDue, from the wheel: tasks of this millisecond are due.
	slotDue struct{ ms int64 }
	// deadlinesDue, from the wheel: holds of this millisecond run out.
	deadlinesDue struct{ ms int64 }
	// flushBatches, from the shard: start store calls with what has come together.
	flushBatches struct{}
	// reload, from the shard: see shard.reloadLater.
	reload struct{}
	// loadTick and watchTick, from the node.
	loadTick  struct{}
	watchTick struct{}
	// releaseShard, from the node at shutdown and of an idle topic: finish store calls, give up
	// the claim.
	releaseShard struct{ done chan struct{} }
)

// To a shard, from its store calls, each in a CallDone.
type (
	// givenUp: a claim was released, or could not be.
	givenUp struct {
		fence store.Fence
		err   error
	}
	claimed struct {
		fence store.Fence
		seq   int64
		err   error
	}
	added struct {
		seq     int64
		items   []Addition
		results []store.AddResult
		held    bool // by HoldNew
		keyed   bool // by AddKeyed
		tokens  []store.Hold
		err     error
	}
	holdsDone struct {
		batch   []holdRequest
		tokens  []store.Hold
		results []store.HoldResult
		err     error
	}
	acksDone struct {
		batch    []settleItem
		statuses []store.Status
		repeated bool         // an answer was lost on the way
		latest   store.Millis // the store's clock had not passed it
		answered int          // of statuses, by the actor; the others it has not seen
		err      error
	}
	nacksDone struct {
		seq     int64
		batch   []settleItem
		results []store.NackResult
		now     store.Millis
		latest  store.Millis
		unseen
		err error
	}
	extendsDone struct {
		batch   []settleItem
		results []store.ExtendResult
		latest  store.Millis // the store's clock had not passed it
		err     error
	}
	recovered struct {
		seq     int64
		batch   []expired
		nacks   []store.Nack
		results []store.NackResult
		unseen
		err error
	}
	// unseen is set when an answer was lost on the way: tasks may have become
	// pending since then that no result names.
	unseen struct {
		repeated bool
		began    store.Millis
	}
	windowLoaded struct{ loaded }
	laneLoaded   struct {
		lane *agenda.Lane
		loaded
	}
	lanesFound struct {
		heads []store.LaneHead
		err   error
	}
	runningFound struct {
		holds   []store.Running
		permits heldPermits // of holds that another owner took
		overdue []store.Entry
		first   bool // the walk after a claim
		epoch   int64
		since   int64 // of the shard's holds, the last when the walk began
		err     error
	}
	swept struct {
		repaired int
		next     string
		err      error
	}
)

// To a worker.
type (
	// deliver, from a shard: tasks held for this subscription.
	deliver struct {
		shard int
		tasks []subscription.HeldTask
	}
	// settleFrame, from a Subscription: settlements under a sequence.
	settleFrame struct {
		sequence    uint64
		settlements []subscription.Settlement
		out         subscription.Outbox
	}
	// ended, from the topic: the stream is gone; give back what it left.
	ended struct {
		undelivered []subscription.Delivery
		shards      []int // of which to await forgotten
	}
	// forgotten, about a shard: nothing more comes from it. It may come twice.
	forgotten struct{ shard int }
	// cancelAsked, from a shard: of a task that this subscription has.
	cancelAsked struct{ ask subscription.CancelAsk }
	// drainWorker, from the topic.
	drainWorker struct{ grace time.Duration }
)
