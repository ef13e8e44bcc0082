package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
)

// In some runs acks enqueue: tasks of another topic, whose deliveries and whose enqueueing users pause and which
// is full at times, and tasks of their own. Each is there once, if and only if the ack was made. In some of those runs
// some have idempotency keys. In most of these no other task has the key: so they are there once as well, also where a key
// is free by then. In the others tasks share keys, and each is either there once or kept as undeliverable.

// simChained is the topic that acks enqueue into.
const simChained = "chained"

// simMostChained is how many tasks acks enqueue in a run, about: what they enqueue is acked, too, so there may be ever more of them.
const simMostChained = 4000

// simChains is what acks enqueue.
type simChains struct {
	asked  int
	acked  map[string]bool   // tasks whose acks enqueued
	topics map[string]string // of tasks that are not of the first topic
	keyed  map[string]bool   // tasks that have idempotency keys
	deaths int               // of nodes that had delivered messages
}

// drawChained draws how many shards the topic has that acks enqueue into, from a source of its own like
// drawIdle; 0: no ack enqueues.
func (s *sim) drawChained(p *simPlan) int {
	rng := rand.New(rand.NewPCG(s.seed, 51))
	if rng.Float64() < 0.6 && !s.plan.lies.messages || p.rewind > 0 || p.drops > 0 {
		return 0
	}
	p.chainBacklog = []int{0, 0, simLogUniform(rng, 30)}[rng.IntN(3)]
	p.chainMost = simLogUniform(rng, 60)
	p.chainKeyed = rand.New(rand.NewPCG(s.seed, 91)).IntN(3) == 0
	if keys := rand.New(rand.NewPCG(s.seed, 93)); p.chainKeyed && keys.IntN(2) == 0 {
		p.chainShared = 1 + keys.IntN(4)
	}
	return 1 + rng.IntN(3)
}

// drawFulls draws how often a shard is full, from a source of its own like drawIdle: where messages go to other shards.
func (s *sim) drawFulls(p *simPlan) int {
	if p.chained+p.away == 0 {
		return 0
	}
	return rand.New(rand.NewPCG(s.seed, 55)).IntN(8)
}

// keepsCells reports whether nodes have a store that keeps cells.
func (s *sim) keepsCells() bool {
	p := &s.plan
	return p.schedules+p.workflows+p.audience+p.chained > 0
}

// nextOf draws what an ack enqueues; none: nothing.
func (s *sim) nextOf(w *simWorker) (next []service.NewTask) {
	if s.plan.chained == 0 || s.chains.asked >= simMostChained || time.Since(s.start) > s.plan.active || !s.does(simEnqueuesWithAcks, 0.4) {
		return nil
	}
	many := 1
	if s.chance(0.2) {
		many = 1 + s.rng.IntN(s.plan.chainMost)
	}
	for range many {
		s.chains.asked++
		// Each has an id of its own: one that the server gives follows from a random token, and would not come again.
		t := service.NewTask{Topic: simChained, Task: store.Task{ID: fmt.Sprintf("c%d", s.chains.asked), MaxRetries: s.rng.IntN(4)}}
		switch r := s.rng.IntN(10); {
		case r < 2 && w.topic == simTopic:
			t.Topic = simTopic
		case r < 4:
			t.Task.Traits = &store.Traits{Priority: s.rng.IntN(3), FairnessKey: "a"}
		}
		if s.chance(0.3) {
			t.When.Delay = s.between(time.Millisecond, 20*time.Second)
		}
		t.Task.Payload = fmt.Append(nil, "c", s.chains.asked)
		if s.plan.chainKeyed && s.chance(0.5) {
			t.Task.Key = s.drawKey()
			t.Task.ID = simOrderedID(t.Task.Key.Text, s.chains.asked)
			s.chains.keyed[t.Task.ID] = true
		}
		if t.Topic == simChained {
			s.chains.topics[t.Task.ID] = simChained
		}
		next = append(next, t)
	}
	return next
}

// drawKey draws the idempotency key of a task that an ack enqueues.
func (s *sim) drawKey() *store.Key {
	if n := s.plan.chainShared; n > 0 {
		return &store.Key{Text: fmt.Sprintf("shared%d", s.rng.IntN(n)), Window: []time.Duration{0, 0, 5 * time.Second}[s.rng.IntN(3)], OnConflict: store.KeyReject}
	}
	return &store.Key{Text: fmt.Sprintf("key%d", s.chains.asked), Window: []time.Duration{0, time.Second, time.Hour}[s.rng.IntN(3)]}
}

// chainOn writes down what an ack made that was committed.
func (s *sim) chainOn(sh store.Shard, c *store.Commit) {
	for i := range c.Acks {
		s.chains.acked[c.Acks[i].ID] = true
	}
}

// meddleWithReceived has a node disappear at times when a shard has received messages with idempotency keys from it,
// before it can forget them: the next owner delivers them anew, when the tasks that they became may have ended.
func (s *sim) meddleWithReceived(n *simNode, c *store.Commit) {
	if c.Receive == nil || !c.Keyed() || s.chains.deaths == 3 || time.Since(s.start) > s.plan.active-10*time.Second || !s.chance(0.2) {
		return
	}
	s.chains.deaths++
	s.sometimes("an owner is gone when a shard has received its messages")
	s.after(s.between(0, 5*time.Millisecond), func() {
		if s.nodes[n.i] == n && !n.dead.Load() {
			lasts := s.between(100*time.Millisecond, 2*s.plan.lease)
			s.excuse(lasts)
			s.restart(n, lasts)
		}
	})
}

// asMade is a commit with those of its tasks that it made: one that has a key may be there already, or be refused.
func asMade(c *store.Commit, r *store.CommitResult) *store.Commit {
	if len(r.Adds) == 0 {
		return c
	}
	made := *c
	made.Adds = nil
	for i, t := range c.Adds {
		switch r.Adds[i].Status {
		case store.Added, store.Passed, store.Replaced:
			made.Adds = append(made.Adds, t)
		}
	}
	return &made
}

// chained writes down a task that came of an ack, as what a producer asks for.
func (s *sim) chained(t *store.Task) {
	s.client("acks").ask(history.Event{Op: history.Enqueue, Task: t.ID, Due: int64(t.Due), Sum: string(t.Payload), Attempts: t.MaxRetries + 1})(
		history.Event{Due: int64(t.Due)}, nil)
}

// half looks whether an ack that was answered OK has made what it enqueues.
func (s *sim) half(task string, next []service.NewTask, a *history.Event, err error) {
	if len(next) > 0 && err == nil && a.Result != history.Already && !s.chains.acked[task] {
		s.broken("half: an ack of %s is answered OK, and what it enqueues is nowhere", task)
	}
}

// settleNext settles over a stream what may enqueue.
func (w *simWorker) settleNext(seq uint64, a subscription.Settlement, next []service.NewTask) {
	s := w.s
	if len(next) == 0 {
		w.sub.Settle(seq, []subscription.Settlement{a})
		return
	}
	s.spawn(w.node, func() error {
		ctx, cancel := w.node.timeout()
		defer cancel()
		w.sub.SettleNext(ctx, seq, []subscription.Settlement{a}, service.Nexts{0: {Tasks: next}})
		return nil
	}, func(error) {})
}

// pauses has users pause topics and let them go on, and shards be full for a while.
func (s *sim) pauses() {
	at := func(most time.Duration) time.Time { return s.start.Add(s.between(time.Second, most)) }
	pauses := 0
	if s.plan.chained > 0 {
		pauses = 4 + s.rng.IntN(16)
	}
	for range pauses {
		s.at(at(s.plan.active-20*time.Second), func() { s.pauseTopic(s.drawPaused(), s.chance(0.7), s.between(time.Millisecond, 20*time.Second)) })
	}
	for range s.plan.fulls {
		s.at(at(s.plan.active-20*time.Second), func() { s.fill(s.between(time.Millisecond, 20*time.Second)) })
	}
}

func (s *sim) drawPaused() string {
	if s.plan.schedules+s.plan.workflows+s.plan.audience == 0 && s.chance(0.2) {
		return simTopic
	}
	return simChained
}

// pauseTopic has a user pause enqueueing or deliveries for a while.
func (s *sim) pauseTopic(topic string, enqueue bool, lasts time.Duration) {
	n := s.anyNode()
	if n == nil {
		return
	}
	s.configure(n, topic, enqueue, true)
	s.after(lasts, func() { s.goOn(topic, enqueue) })
	s.after(lasts+30*time.Second, func() { s.goOn(topic, enqueue) }) // should the store have been slow to pause it
}

// goOn has a user ask nodes to end a pause until it is done.
func (s *sim) goOn(topic string, enqueue bool) {
	t, err := s.mem.GetTopic(simContext, topic)
	if err != nil || !(enqueue && t.EnqueuePaused || !enqueue && t.DeliveryPaused) {
		return
	}
	if n := s.anyNode(); n != nil {
		s.configure(n, topic, enqueue, false)
	}
	s.after(s.plan.callTimeout+time.Second, func() { s.goOn(topic, enqueue) })
}

func (s *sim) configure(n *simNode, topic string, enqueue, paused bool) {
	s.log("%s is asked for %s: enqueue %v, paused %v", n.key, topic, enqueue, paused)
	s.late.pause(s, topic)
	change := service.TopicChange{DeliveryPaused: &paused}
	if enqueue {
		change = service.TopicChange{EnqueuePaused: &paused}
	}
	s.spawn(n, func() error {
		ctx, cancel := n.timeout()
		defer cancel()
		_, err := n.use.Topics.Configure(ctx, topic, change)
		return err
	}, func(err error) { s.late.pause(s, topic) })
}

// walksMessages is told when a node reads behind the first page of a queue or of an out-box: at times the topic that
// its messages wait for goes on just then.
func (s *sim) walksMessages(n *simNode, after int64) {
	if after == 0 || !s.chance(0.3) {
		return
	}
	for _, sh := range s.shards() {
		if sh = sh.For(0); s.faults.full[sh] > 0 {
			s.sometimes("a shard has room while a relay is behind messages that wait for it")
			s.after(s.between(0, 10*time.Millisecond), func() { s.faults.full[sh] = 0 })
		}
	}
	if s.plan.chained == 0 {
		return
	}
	if t, err := s.mem.GetTopic(simContext, simChained); err != nil || !t.EnqueuePaused {
		return
	}
	s.sometimes("a topic goes on while a relay is behind messages that wait for it")
	s.after(s.between(0, 10*time.Millisecond), func() {
		if !n.dead.Load() {
			s.configure(n, simChained, true, false)
		}
	})
}

// fill has a shard take nothing new for a while.
func (s *sim) fill(lasts time.Duration) {
	shards := s.shards()
	sh := shards[s.rng.IntN(len(shards))].For(0)
	s.log("%v is full", sh)
	s.faults.full[sh]++
	s.after(lasts, func() {
		if s.faults.full[sh] > 0 {
			s.faults.full[sh]--
		}
		s.log("%v has room: %v", sh, s.faults.full[sh] == 0)
	})
}

// callNext settles at any node what may enqueue.
func (s *sim) callNext(ctx context.Context, n *simNode, topic string, a subscription.Settlement, next []service.NewTask) (history.Event, error) {
	var nexts service.Nexts
	if len(next) > 0 {
		nexts = service.Nexts{0: {Tasks: next}}
	}
	results, err := n.use.Delivery.SettleNext(ctx, topic, []subscription.Settlement{a}, nexts)
	if err != nil {
		return history.Event{}, err
	}
	return settledAnswer(results)
}
