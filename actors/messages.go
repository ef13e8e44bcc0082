package actors

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/store"
)

// To the supervisor.
type (
	// openTopic, from System: start the topic's actor unless it runs.
	openTopic struct {
		topic store.Topic
		reply chan *topicRef // buffered
	}
	// closeTopic, from System: stop the topic's actor.
	closeTopic struct {
		name string
		done chan struct{}
	}
	// tellTopics, from System: a message for every topic, also those that are being
	// opened: their shards begin with what was true before, or are told.
	tellTopics struct{ message any }
)

// To a topic.
type (
	// enqueue, from System: tasks to store, by shard of the topic as it is there.
	enqueue struct {
		topic  *store.Topic
		shards [][]addition
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
	// refunded, from a shard: assignments that came to nothing.
	refunded struct {
		sub int64
		n   int
	}
	// shardOwned, from a shard: this node owns it.
	shardOwned struct{ shard int }
	// shardLost, from a shard: what it made ready is void, and it is not owned.
	shardLost struct{ shard int }
	// readyGone, from a shard: what it made ready is gone from the store.
	readyGone struct{ shard int }
	// viewChanged, from System: other nodes came or went.
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
	// subscribe, from System.
	subscribe struct {
		options SubscribeOptions
		out     Outbox
		reply   chan *subscriber // buffered
	}
	// abandoned, from System: nobody waits for this subscription any more.
	abandoned struct{ reply chan *subscriber }
	// grant and unsubscribe, from a Subscription.
	grant struct {
		sub int64
		n   int
	}
	unsubscribe struct {
		sub         int64
		undelivered []Delivery
	}
	// drainTopic, from System: hand out nothing more, tell the subscriptions, and
	// close done once nothing is in flight.
	drainTopic struct {
		grace time.Duration
		done  chan struct{}
	}
	// countSubscriptions, from System.
	countSubscriptions struct{ reply chan int }
	// rampOn, from the topic itself after a pause: hand out a little more.
	rampOn struct{}
)

// To a topic and its shards.
type (
	// configured, from System: the topic's configuration changed.
	configured struct{ topic store.Topic }
	// reshaped, from System: the topic has other shards now. done is closed when
	// they can be sent to.
	reshaped struct {
		topic store.Topic
		done  chan struct{}
	}
	// leaseLost, from the keeper: shards are no longer ours until leaseBack.
	leaseLost struct{}
	leaseBack struct{}
	// clockJumped, from System: the store's clock was set, and what is due soon is
	// something else than before.
	clockJumped struct{}
)

// To a shard.
type (
	// addTasks, from the topic.
	addTasks struct{ items []addition }
	// holdTasks, from the topic.
	holdTasks struct {
		sub     *subscriber
		tasks   []store.Entry
		leaves  []*leave // nil: none of them is under limits
		counted bool     // the topic is to hear when they are held
	}
	// settleHolds, from System and workers: some settlements of a call.
	settleHolds struct {
		call  *settleCall
		items []int // indexes into the call
	}
	// forget, from the topic: the subscription is over; confirm to its worker.
	forget struct{ sub *subscriber }
	// pendingChanged, from System: a task became pending or moved, by a store call.
	pendingChanged struct {
		task store.Entry
		seq  int64
	}
	// placed, from the topic and System: whether this node should own the shard.
	placed struct {
		wanted bool
		told   bool // by another node, that would own it
	}
	// pendingElsewhere and endedElsewhere, from System: other nodes' store calls.
	pendingElsewhere struct {
		seq   int64
		tasks []store.Entry
	}
	endedElsewhere struct{ holds []EndedHold }
	// waitedElsewhere, from System: another node waits for tasks to be settled.
	waitedElsewhere struct {
		ids   []string
		node  string
		first bool
	}
	// cancelHolds, from System and links: the cancellation of tasks was asked for.
	cancelHolds struct{ holds []EndedHold }
	// heldElsewhere, from a link: the shard's owner holds these for a subscription.
	heldElsewhere struct {
		sub   *subscriber
		tasks []Delivery
	}
	// seqSeen, from System: the seq that the store has, and whether it has no task
	// to deliver or to watch.
	seqSeen struct {
		seq   int64
		empty bool
	}
	// givenUp, from the shard: its claim was released, or could not be.
	givenUp struct {
		fence store.Fence
		err   error
	}
	// handShard, from System: give the shard up, to whoever should own it.
	handShard struct{}
	// describeShard, from System.
	describeShard struct{ reply chan OwnedShard }
	// pendingGone, from System: tasks were deleted.
	pendingGone struct{ ids []string }
	// slotDue, from the wheel: tasks of this millisecond are due.
	slotDue struct{ ms int64 }
	// deadlinesDue, from the wheel: holds of this millisecond run out.
	deadlinesDue struct{ ms int64 }
	// takeOff, from the shard: start store calls with what has come together.
	takeOff struct{}
	// reload, from the shard: read again what is due from then on.
	reload struct{ from store.Millis }
	// loadTick and watchTick, from System; loadTick from the shard too.
	loadTick  struct{}
	watchTick struct{}
	// releaseShard, from System at shutdown: finish store calls, give up the claim.
	releaseShard struct{ done chan struct{} }
)

// To a shard, from its store calls.
type (
	claimed struct {
		fence store.Fence
		seq   int64
		err   error
	}
	added struct {
		seq     int64
		items   []addition
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
		now     store.Millis
		err     error
	}
	recovered struct {
		seq     int64
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
		lane *lane
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
		tasks []heldTask
	}
	// settleFrame, from a Subscription: settlements under a sequence.
	settleFrame struct {
		sequence    uint64
		settlements []Settlement
	}
	// ended, from the topic: the stream is gone; give back what it left.
	ended struct {
		undelivered []Delivery
		shards      int // how many forgotten to await
	}
	// forgotten, from a shard: nothing more comes from it.
	forgotten struct{}
	// cancelAsked, from a shard: of a task that this subscription has.
	cancelAsked struct{ ask CancelAsk }
	// drainWorker, from the topic.
	drainWorker struct{ grace time.Duration }
)

// topicRef is how System reaches a topic.
type topicRef struct {
	pid           *actor.PID
	ready         chan struct{} // closed once the shards can be sent to
	config        atomic.Pointer[store.Topic]
	layout        atomic.Pointer[layout] // changes before config does
	reachable     atomic.Bool            // hints of other nodes find its shards; none is claimed before
	looking       atomic.Bool            // its configuration is being read, for a hint
	turn          int                    // when its shards are ticked, 0 to beats-1
	active        atomic.Int64           // when it was last used, in Unix nanoseconds
	subscriptions atomic.Int64           // of this node's workers
	backlog       allowance
	smooth        smoother
}

// subscriber is a subscription as the actors share it. Immutable but for gone.
type subscriber struct {
	id      int64
	options SubscribeOptions
	worker  *actor.PID
	out     Outbox
	node    string      // this one
	party   string      // see topicActor.told
	gone    atomic.Bool // the stream ended: hold nothing more for it
}

// heldTask is a task just held, on its way to a worker.
type heldTask struct {
	task     *store.Task
	token    store.Token
	deadline store.Millis
}

// failer is a message that callers wait on. It is told when it was lost.
type failer interface{ fail(err *Error) }
