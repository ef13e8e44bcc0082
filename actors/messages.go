package actors

import (
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
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

type (
	// AddBatch is sent by use cases: tasks to store, by shard of the topic as it is there.
	AddBatch struct {
		Topic  *store.Topic
		Shards [][]shard.Addition
	}
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
	// listWorkers, from the node: workers that are younger than after.
	listWorkers struct {
		after int64
		most  int
		reply chan []fleet.Worker // buffered
	}
	// askIdle, from the node: whether nobody subscribes, and nothing is in flight.
	askIdle struct{ reply chan bool } // buffered
	// wantedShards, from the node: another node, which has workers, asked for shards of this one.
	wantedShards struct{ numbers []int }
	// tellAgain, from the topic itself: tell nodes again what is ready here.
	tellAgain struct{}
	// placeShards, from the topic itself: shards that were given up may be claimed again.
	placeShards struct{ numbers []int }
	// roomInBytes, from a subscription's budget: more of its tasks may be held.
	roomInBytes struct{}
	// rampOn, from the topic itself after a pause: hand out a little more.
	rampOn struct{}
	// reshaped, from the node: the topic has other shards now. done is closed when
	// they can be sent to.
	reshaped struct {
		topic store.Topic
		done  chan struct{}
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
	// drainWorker, from the topic.
	drainWorker struct{ grace time.Duration }
)

// Fail answers for tasks that reach no shard.
func (m *AddBatch) Fail(err *problem.Error) {
	for _, items := range m.Shards {
		shard.FailAdditions(items, err)
	}
}

func (m *subscribe) Fail(*problem.Error) { offer(m.reply, nil) }

func (m *settleFrame) Fail(err *problem.Error) {
	results := make([]subscription.Settled, len(m.settlements))
	for i, a := range m.settlements {
		results[i] = subscription.Settled{ID: a.ID, Token: a.Token, Kind: a.Kind, Err: err}
	}
	m.out.Settled(m.sequence, results)
}

func (m *askIdle) Fail(*problem.Error) { offer(m.reply, false) }

func (m *listWorkers) Fail(*problem.Error) { offer(m.reply, nil) }

func (m *countSubscriptions) Fail(*problem.Error) { offer(m.reply, 0) }

// offer answers on a channel with room for one answer, unless there is one: the message was
// answered before the panic.
func offer[T any](reply chan T, v T) {
	select {
	case reply <- v:
	default:
	}
}
