package actors

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/store"
)

// topicActor runs one topic on this node: it owns the dispatch core and is the
// parent of the topic's shards and workers. It owns a goroutine for each pause, gone
// when it has stopped.
type topicActor struct {
	*runtime
	ref    *topicRef
	topic  *store.Topic
	log    *slog.Logger
	core   core
	subs   map[int64]*subscriber
	nextID int64
	gauges topicMetrics
	gate   *gate     // nil: the topic has had no limits
	armed  time.Time // when the gate is looked at next
	calls  *calls    // about limits

	reserves runway[reservation]
	acquires runway[*ticket]
	frees    runway[*permit]

	owned []bool // by shard: this node may hold its tasks
	links map[linkKey]*link
	peers map[string]*subscriber // by party: the one subscription that is told
	told  map[string]int         // by party: how many tasks it knows to be ready here
	stop  chan struct{}
	wg    sync.WaitGroup // of pauses

	draining *drainTopic
	drained  bool
	ramping  bool // a rampOn is on its way
}

func newTopicActor(rt *runtime, ref *topicRef) *topicActor {
	topic := ref.config.Load()
	return &topicActor{
		runtime: rt,
		ref:     ref,
		topic:   topic,
		log:     rt.log,
		subs:    make(map[int64]*subscriber),
		gauges:  rt.metrics.topic(topic.Name),
		calls:   newCalls(rt.pool),

		reserves: runway[reservation]{most: 1, limit: limitBatch},
		acquires: runway[*ticket]{most: 2, limit: limitBatch},
		frees:    runway[*permit]{most: 1, limit: limitBatch},

		owned: make([]bool, topic.End()),
		links: make(map[linkKey]*link),
		peers: make(map[string]*subscriber),
		told:  make(map[string]int),
		stop:  make(chan struct{}),
	}
}

// Receive handles one message; it never waits.
func (t *topicActor) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		t.start(c)
	case *actor.Restarting:
		t.abandon()
	case *actor.Stopping:
		t.end()
	case *actor.Stopped:
		t.metrics.forget(t.topic.Name)
		return
	case *enqueue:
		t.enqueue(m)
	case *becameReady:
		t.hold(t.core.add(m.shard, m.tasks))
	case *settledHolds:
		t.hold(t.core.settled(m.sub, m.n))
	case *refunded:
		t.hold(t.core.refund(m.sub, m.n))
	case *shardOwned:
		t.owned[m.shard] = true
	case *shardLost:
		t.owned[m.shard] = false
		t.drop(m.shard)
	case *readyGone:
		t.drop(m.shard)
	case *viewChanged:
		t.changeView()
	case *linkOpened:
		t.hold(t.core.link(m.link.sub.id, m.link.node, true))
	case *linkDemand:
		t.onDemand(m)
	case *linkClosed:
		t.onLinkClosed(m)
	case *reopenLink:
		t.reopen(m)
	case *grant:
		t.granted(m)
		t.hold(t.core.grant(m.sub, m.n))
	case *subscribe:
		t.subscribe(c, m)
	case *abandoned:
		select {
		case sub := <-m.reply:
			t.unsubscribe(&unsubscribe{sub: sub.id})
		default:
		}
	case *unsubscribe:
		t.unsubscribe(m)
	case *configured:
		t.configure(m)
	case *reshaped:
		t.reshape(c, m)
	case *rampOn:
		t.ramping = false
		t.rampUp()
	case *clockJumped:
		t.toShards(m)
		t.onLimits(m)
	case *leaseLost:
		t.toShards(m)
		t.unlink()
	case *leaseBack:
		t.toShards(m)
		t.openLinks()
	case *drainTopic:
		t.drain(m)
	case *gateTick, *tokensReserved, *permitsAcquired, *permitsFreed, *permitsEnded, *permitsFree:
		t.onLimits(m)
	case *countSubscriptions:
		m.reply <- t.workers()
	}
	t.flyLimits()
	t.ask()
	t.demands()
	t.finishDrain()
	t.gauges.set(&t.core)
}

// start spawns the shards under their fixed names, also after a restart.
func (t *topicActor) start(c actor.Context) {
	t.core.every = t.topic.Ageing()
	t.core.pause(t.topic.DeliveryPaused)
	t.limit()
	t.rampUp()
	for n, p := range *t.ref.layout.Load() {
		if p.pid != nil {
			t.spawnShard(c, n, p.dozing)
		}
	}
	select {
	case <-t.ref.ready: // after a restart
	default:
		close(t.ref.ready)
	}
}

// spawner is the part of an actor's context that starts and ends others.
type spawner interface {
	SpawnNamed(props *actor.Props, name string) (*actor.PID, error)
	Poison(pid *actor.PID)
}

func (t *topicActor) spawnShard(c spawner, n int, dozing *atomic.Bool) {
	id := store.Shard{Topic: t.topic.Name, N: n}
	props := t.props(func() actor.Actor { return newShard(t.runtime, id, t.ref, dozing) })
	if _, err := c.SpawnNamed(props, shardName(n)); err != nil {
		panic(fmt.Sprintf("spawn shard %v: %v", id, err)) // names are ours: a bug
	}
}

// abandon tells the streams of a topic that starts anew to reconnect: their
// workers stop with it.
func (t *topicActor) abandon() {
	for _, sub := range inOrder(t.subs, cmp.Compare) {
		sub.gone.Store(true)
		t.send(sub.worker, &drainWorker{})
	}
	t.end()
}

// end closes the links and waits for the goroutines.
func (t *topicActor) end() {
	for _, l := range t.links {
		l.remote.Close()
	}
	close(t.stop)
	t.wg.Wait()
	t.calls.close()
}

// after sends the topic a message after a pause.
func (t *topicActor) after(d time.Duration, m any) {
	t.wg.Go(func() {
		pause := time.NewTimer(d)
		defer pause.Stop()
		select {
		case <-pause.C:
			t.send(t.ref.pid, m)
		case <-t.stop:
		}
	})
}

// changeView takes in that other nodes came or went.
func (t *topicActor) changeView() {
	for n := range *t.ref.layout.Load() {
		t.tell(t.ref, n, &placed{wanted: t.fleet.owns(store.Shard{Topic: t.topic.Name, N: n})})
	}
	t.openLinks()
	for _, sub := range t.subs {
		if sub.options.OnDemand && !sub.options.byNode() {
			sub.out.NodesChanged()
		}
	}
}

// workers is the number of subscriptions of workers, not of other nodes.
func (t *topicActor) workers() (n int) {
	for _, sub := range t.subs {
		if !sub.options.byNode() {
			n++
		}
	}
	return n
}

// enqueue passes tasks to their shards. Those that are due at once get waiting
// credit, if there is any, and are held as they are stored.
func (t *topicActor) enqueue(m *enqueue) {
	now := t.clock.millis()
	for n, items := range m.shards {
		if len(items) == 0 {
			continue
		}
		pid := t.ref.shard(n)
		if pid == nil { // retired since: the caller looks again where they go
			failAdditions(items, storeError(store.ErrSealed))
			continue
		}
		if t.owned[n] {
			t.reserve(items, now)
		}
		t.send(pid, &addTasks{items: items})
	}
}

func (t *topicActor) reserve(items []addition, now store.Millis) {
	due := 0
	for i := range items {
		if items[i].immediate(now) && !t.limited(items[i].task.Traits) {
			due++
		}
	}
	if due == 0 {
		return
	}
	given := t.core.reserve(due)
	for i := 0; len(given) > 0; i++ {
		if items[i].immediate(now) && !t.limited(items[i].task.Traits) {
			items[i].sub, given = t.subs[given[0]], given[1:]
		}
	}
}

func (t *topicActor) subscribe(c actor.Context, m *subscribe) {
	t.nextID++
	sub := &subscriber{id: t.nextID, options: m.options, node: t.cfg.Node, party: party(t.nextID, &m.options), out: m.out}
	props := t.props(func() actor.Actor { return newWorker(t.runtime, t.ref, sub, m.out) })
	sub.worker = c.SpawnPrefix(props, "worker")
	t.subs[sub.id] = sub
	t.core.subscribe(sub.id, m.options.MaxInFlight, m.options.OnDemand)
	if key := sub.party; m.options.OnDemand && t.peers[key] == nil {
		t.peers[key] = sub
	}
	for _, other := range t.fleet.others() {
		t.openLink(sub, other)
	}
	t.ref.subscriptions.Store(int64(t.workers()))
	t.log.Debug("subscribed", "topic", t.topic.Name, "worker", m.options.Worker)
	m.reply <- sub
	if t.draining != nil {
		t.send(sub.worker, &drainWorker{grace: t.draining.grace})
	}
}

// party names who is told of what is ready: a node once for all its subscriptions,
// a worker for itself.
func party(id int64, o *SubscribeOptions) string {
	if o.byNode() {
		return o.Peer
	}
	return fmt.Sprint("subscription ", id) // no node has a blank in its name
}

// unsubscribe ends a subscription in order: nothing new is assigned to it, each
// shard confirms that nothing more is on its way, and then its worker stops.
func (t *topicActor) unsubscribe(m *unsubscribe) {
	sub := t.subs[m.sub]
	if sub == nil {
		return
	}
	sub.gone.Store(true)
	t.core.unsubscribe(m.sub)
	delete(t.subs, m.sub)
	t.closeLinks(m.sub)
	t.successor(sub)
	t.ref.subscriptions.Store(int64(t.workers()))
	t.send(sub.worker, &ended{undelivered: m.undelivered, shards: len(t.ref.shards())})
	t.toShards(&forget{sub: sub})
}

// successor picks another subscription of a node to tell what is ready.
func (t *topicActor) successor(gone *subscriber) {
	peer := gone.party
	if t.peers[peer] != gone {
		return
	}
	delete(t.peers, peer)
	delete(t.told, peer)
	for _, sub := range inOrder(t.subs, cmp.Compare) {
		if sub.party == peer {
			t.peers[peer] = sub
			return
		}
	}
}

func (t *topicActor) configure(m *configured) {
	t.topic = &m.topic
	t.rampUp()
	t.core.every = m.topic.Ageing()
	t.hold(t.limit())
	t.hold(t.core.pause(m.topic.DeliveryPaused || t.draining != nil))
	t.toShards(m)
}

func (t *topicActor) drain(m *drainTopic) {
	t.draining = m
	t.core.pause(true)
	for _, sub := range inOrder(t.subs, cmp.Compare) {
		t.send(sub.worker, &drainWorker{grace: m.grace})
	}
}

// finishDrain reports once nothing is in flight any more.
func (t *topicActor) finishDrain() {
	if t.draining == nil || t.drained || t.core.inFlight() > 0 || !t.frees.idle() {
		return
	}
	t.drained = true
	close(t.draining.done)
}

func (t *topicActor) toShards(m any) {
	for _, pid := range t.ref.shards() {
		t.send(pid, m)
	}
}

// groupByShard returns the indexes of items by the shard they belong to.
func groupByShard(n, shards int, shard func(i int) int) [][]int {
	groups := make([][]int, shards)
	for i := range n {
		at := shard(i)
		if groups[at] == nil {
			groups[at] = slices.Grow(groups[at], n/shards+1)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}
