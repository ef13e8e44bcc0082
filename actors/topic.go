package actors

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// topicActor runs one topic on this node: it owns the dispatch core and is the
// parent of the topic's shards and workers. It owns a goroutine for each pause, gone
// when it has stopped.
type topicActor struct {
	*runtime
	ref    *Topic
	topic  *store.Topic
	log    *slog.Logger
	core   *dispatch.Topic
	subs   map[int64]*subscriber
	gauges topicMetrics
	calls  *engine.Calls // about limits

	reserves engine.Batcher[dispatch.Reservation]
	acquires engine.Batcher[*dispatch.Ticket]
	frees    engine.Batcher[*dispatch.Permit]

	owned []bool // by shard: this node may hold its tasks
	links map[linkKey]*link
	peers map[string]*subscriber // by party: the one subscription that is told
	told  map[string]int         // by party: how many tasks it knows to be ready here
	stop  chan struct{}
	wg    sync.WaitGroup // of pauses

	draining *drainTopic
	over     bool // it stops
	ramping  bool // a rampOn is on its way
}

func newTopicActor(rt *runtime, ref *Topic) *topicActor {
	topic := ref.config.Load()
	return &topicActor{
		runtime: rt,
		ref:     ref,
		topic:   topic,
		log:     rt.log,
		core:    dispatch.NewTopic(topic.Name),
		subs:    make(map[int64]*subscriber),
		gauges:  rt.metrics.topic(topic.Name),
		calls:   engine.NewCalls(rt.pool),

		reserves: engine.Batcher[dispatch.Reservation]{Most: 1, Limit: limitBatch},
		acquires: engine.Batcher[*dispatch.Ticket]{Most: 2, Limit: limitBatch},
		frees:    engine.Batcher[*dispatch.Permit]{Most: 1, Limit: limitBatch},

		owned: make([]bool, topic.End()),
		links: make(map[linkKey]*link),
		peers: make(map[string]*subscriber),
		told:  make(map[string]int),
		stop:  make(chan struct{}),
	}
}

// Receive handles one message; it never waits. Its shards and workers stop before it
// does: what comes meanwhile is refused.
func (t *topicActor) Receive(c actor.Context) {
	if _, waited := c.Message().(failer); waited && t.over {
		failLate(c.Message())
		return
	}
	now := t.clock.Now()
	switch m := c.Message().(type) {
	case *actor.Started:
		t.start(c)
	case *actor.Restarting:
		t.abandon()
	case *actor.Stopping:
		t.over = true
		t.abandon()
	case *actor.Stopped:
		t.metrics.forget(t.topic.Name)
		return
	case *AddBatch:
		t.enqueue(m)
	case *becameReady:
		t.core.Ready(now, m.shard, m.tasks)
	case *settledHolds:
		t.core.Settled(now, m.sub, m.n)
	case *refunded:
		t.core.Unassign(now, dispatch.Address{Sub: m.sub, Shard: m.shard}, m.counted)
		t.core.Refund(now, m.sub, m.n-m.counted)
	case *holdOutcome:
		t.core.Held(now, m.shard, m.Outcome)
	case *shardOwned:
		t.owned[m.shard] = true
	case *shardLost:
		t.owned[m.shard] = false
		t.core.Drop(now, m.shard)
		if m.ended {
			t.core.ShardEnded(now, m.shard)
		}
	case *readyGone:
		t.core.Drop(now, m.shard)
	case *viewChanged:
		t.changeView()
	case *linkOpened:
		t.core.Link(now, m.link.sub.id, m.link.node, true)
	case *linkDemand:
		t.onDemand(m)
	case *linkClosed:
		t.onLinkClosed(m)
	case *reopenLink:
		t.reopen(m)
	case *roomInBytes:
		t.core.Roomy(now)
	case *grant:
		t.granted(m)
		t.core.Grant(now, m.sub, m.n)
	case *subscribe:
		t.subscribe(c, m)
	case *abandoned:
		select {
		case sub := <-m.reply:
			if sub != nil {
				t.unsubscribe(&unsubscribe{sub: sub.id})
			}
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
	case *callDone:
		t.onCall(m)
	case *gateTick, *permitsEnded, *permitsFree:
		t.onLimits(m)
	case *countSubscriptions:
		m.reply <- t.workers()
	}
	t.carryOut()
	t.demands()
	t.finishDrain()
	t.gauges.set(t.core)
}

// start spawns the shards under their fixed names, also after a restart.
func (t *topicActor) start(c actor.Context) {
	t.tellShards()
	t.core.Pause(t.clock.Now(), t.topic.DeliveryPaused)
	t.limit()
	t.rampUp()
	if t.ref.draining != nil { // before a restart
		t.drain(t.ref.draining)
	}
	for n, p := range *t.ref.layout.Load() {
		if p.pid != nil {
			t.spawnShard(c, n, p)
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
	Children() []*actor.PID
}

func (t *topicActor) spawnShard(c spawner, n int, at shardSlot) {
	id := store.Shard{Topic: t.topic.Name, N: n}
	saved := new(savedShard)
	props := t.props(func() actor.Actor { return newShard(t.runtime, id, t.ref, at, saved) })
	if _, err := c.SpawnNamed(props, shardName(n)); err != nil {
		panic(fmt.Sprintf("spawn shard %v: %v", id, err)) // names are ours: a bug
	}
}

// abandon tells the streams of a topic that ends or starts anew to reconnect: the actors of
// their workers stop with it, so it tells the streams itself.
func (t *topicActor) abandon() {
	for _, sub := range ordered.All(t.subs, cmp.Compare) {
		sub.gone.Store(true)
		sub.out.Drain(0)
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
	t.calls.Close()
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

// changeView records that other nodes came or went.
func (t *topicActor) changeView() {
	for n := range *t.ref.layout.Load() {
		t.place(t.ref, n)
	}
	t.openLinks()
	for _, sub := range t.subs {
		if sub.options.OnDemand && !sub.options.ByNode() {
			sub.out.NodesChanged()
		}
	}
}

// workers is the number of subscriptions of workers, not of other nodes.
func (t *topicActor) workers() (n int) {
	for _, sub := range t.subs {
		if !sub.options.ByNode() {
			n++
		}
	}
	return n
}

// enqueue passes tasks to their shards. Those that are due at once get waiting
// credit, if there is any, and are held as they are stored.
func (t *topicActor) enqueue(m *AddBatch) {
	for n, items := range m.Shards {
		if len(items) == 0 {
			continue
		}
		pid := t.ref.shard(n)
		if pid == nil { // retired since: the caller looks again where they go
			failAdditions(items, problem.FromStore(store.ErrSealed))
			continue
		}
		if t.owned[n] {
			t.reserve(items, t.clockOf(t.ref, n).Millis())
		}
		t.send(pid, &addTasks{items: items})
	}
}

func (t *topicActor) reserve(items []Addition, now store.Millis) {
	due := 0
	for i := range items {
		if items[i].immediate(now) && !t.core.Applies(items[i].Task.Traits) {
			due++
		}
	}
	if due == 0 {
		return
	}
	given := t.core.TakeRoom(due)
	for i := 0; len(given) > 0; i++ {
		if items[i].immediate(now) && !t.core.Applies(items[i].Task.Traits) {
			items[i].sub, given = t.subs[given[0]], given[1:]
		}
	}
}

func (t *topicActor) subscribe(c actor.Context, m *subscribe) {
	id := t.lastSub.Add(1)
	sub := &subscriber{id: id, options: m.options, node: t.cfg.Node, party: party(id, &m.options), out: m.out}
	w := newWorker(t.runtime, t.ref, sub, m.out)
	props := t.props(func() actor.Actor { return w }) // the same after a panic: it counts who has confirmed
	sub.worker = c.SpawnPrefix(props, "worker")
	t.subs[sub.id] = sub
	sub.budget = &budget{
		most: int64(m.options.MaxBytes),
		node: t.bodies,
		size: &t.ref.bodies,
		wake: func() { t.send(t.ref.pid, &roomInBytes{}) },
	}
	t.core.Subscribe(&dispatch.Subscription{
		ID:          sub.id,
		MaxInFlight: m.options.MaxInFlight,
		OnDemand:    m.options.OnDemand,
		Visibility:  m.options.Visibility,
		Bytes:       sub.budget,
	})
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
	if o.ByNode() {
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
	t.core.Unsubscribe(m.sub)
	delete(t.subs, m.sub)
	t.closeLinks(m.sub)
	t.successor(sub)
	t.ref.subscriptions.Store(int64(t.workers()))
	shards := *t.ref.layout.Load()
	t.send(sub.worker, &ended{undelivered: m.undelivered, shards: shards.numbers()})
	for _, n := range shards.numbers() {
		t.send(shards[n].pid, &forget{rt: t.runtime, sub: sub, shard: n})
	}
}

// successor picks another subscription of a node to tell what is ready.
func (t *topicActor) successor(gone *subscriber) {
	peer := gone.party
	if t.peers[peer] != gone {
		return
	}
	delete(t.peers, peer)
	delete(t.told, peer)
	for _, sub := range ordered.All(t.subs, cmp.Compare) {
		if sub.party == peer {
			t.peers[peer] = sub
			return
		}
	}
}

func (t *topicActor) configure(m *configured) {
	t.topic = &m.topic
	t.rampUp()
	t.limit()
	t.core.Pause(t.clock.Now(), m.topic.DeliveryPaused || t.draining != nil)
	t.carryOut() // before the shards have the configuration
	t.toShards(m)
}

func (t *topicActor) drain(m *drainTopic) {
	t.draining, t.ref.draining = m, m
	t.core.Pause(t.clock.Now(), true)
	for _, sub := range ordered.All(t.subs, cmp.Compare) {
		t.send(sub.worker, &drainWorker{grace: m.grace})
	}
}

// finishDrain reports once nothing is in flight any more.
func (t *topicActor) finishDrain() {
	if t.draining == nil || t.draining.over || t.core.InFlight() > 0 || !t.frees.Idle() {
		return
	}
	t.draining.over = true
	close(t.draining.done)
}

func (t *topicActor) toShards(m any) {
	for _, pid := range t.ref.shards() {
		t.send(pid, m)
	}
}

// GroupByShard returns the indexes of items by the shard they belong to.
func GroupByShard(n, shards int, shard func(i int) int) [][]int {
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

// tellShards tells the core which shards have an actor here.
func (t *topicActor) tellShards() {
	layout := *t.ref.layout.Load()
	present := make([]bool, len(layout))
	for n := range layout {
		present[n] = layout[n].pid != nil
	}
	t.core.Shards(present)
}

// reshape gives the topic's actor other shards. One that is still on its way out cannot
// come back yet: the topic stays as it is until the configuration is looked at again.
func (t *topicActor) reshape(c spawner, m *reshaped) {
	defer close(m.done)
	if m.topic == *t.ref.config.Load() {
		return
	}
	last := *t.ref.layout.Load()
	next := t.layoutOf(t.ref.pid, &m.topic, last)
	fresh, gone := last.changes(next)
	for _, n := range fresh {
		if slices.ContainsFunc(c.Children(), func(child *actor.PID) bool { return child.Id == next[n].pid.Id }) {
			return
		}
	}
	for _, n := range fresh {
		t.spawnShard(c, n, next[n])
	}
	for _, n := range gone {
		t.core.Drop(t.clock.Now(), n)
		t.carryOut() // while the others are there
		t.owned[n] = false
		c.Poison(last[n].pid)
	}
	t.owned = append(t.owned, make([]bool, max(0, len(next)-len(t.owned)))...)
	t.ref.layout.Store(&next)
	t.tellShards()
	for _, n := range fresh {
		t.place(t.ref, n)
	}
	t.ref.config.Store(&m.topic)
	t.configure(&configured{m.topic})
}
