package dispatch_test

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/taking"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/limit"
)

// world plays the store, the shards and the workers of some nodes in simulated time against
// dispatch.Topic, by its exported methods only, and tells the model what happens.
type world struct {
	now    time.Time
	store  *limit.Table
	rtt    time.Duration // of a call of the store
	limits store.TopicLimits
	model  *Model
	nodes  []*worldNode
	tasks  map[string]ModelTask
	took   func(id string) time.Duration // of its handler
	events eventQueue
	order  int
	holder uint64
	way    int // tasks with a token that are on their way to a hold
	err    error
	first  func(error) // what to do with a fault; nil: it ends the run
	faults map[string]int
	parts  bool            // the store has no Take: it is made of other calls
	gone   map[string]bool // tasks that somebody deletes before they are held
}

type event struct {
	at  time.Time
	seq int
	do  func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return cmp.Or(q[i].at.Compare(q[j].at), cmp.Compare(q[i].seq, q[j].seq)) < 0
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// worldNode is a topic at a node, with tasks of its own, and a worker of some places, unless others lend it theirs.
type worldNode struct {
	*world
	name    string
	topic   string
	core    *dispatch.Topic
	parts   taking.Taker // of a world whose store has no Take
	lenders []*worldNode // by subscription, the first is sub; none: it has a worker
	told    int          // tasks that they know of: over the last link
	moves   int          // messages of credit since the clock went on
	pumping bool
}

// sub is the subscription of a node with a worker.
const sub = 1

// newLendingWorld returns a world in which the first node has all the workers.
func newLendingWorld(limits store.TopicLimits, nodes, places int) *world {
	w := newWorldOf(limits, places)
	for i := range nodes {
		w.join(i, "t", places, w.nodes[:min(i, 1)]...)
	}
	return w
}

// newNamespaceWorld returns a world of topics in one namespace, at nodes of which all but the last have workers.
func newNamespaceWorld(limits store.TopicLimits, topics, nodes, places int) *world {
	w := newWorldOf(limits, places)
	for t := range topics {
		for i := range nodes {
			var lenders []*worldNode
			if i > 0 && i == nodes-1 {
				lenders = w.nodes[len(w.nodes)-i:]
			}
			w.join(i, fmt.Sprint("t", t), places, lenders...)
		}
	}
	return w
}

func newWorld(limits store.TopicLimits, nodes, places int) *world {
	w := newWorldOf(limits, places)
	for i := range nodes {
		w.join(i, "t", places)
	}
	return w
}

func newWorldOf(limits store.TopicLimits, places int) *world {
	w := &world{
		now: time.UnixMilli(1_700_000_000_000).UTC(), store: limit.NewTable(), rtt: time.Millisecond, limits: limits,
		tasks: map[string]ModelTask{}, faults: map[string]int{}, gone: map[string]bool{}, took: func(string) time.Duration { return 0 },
	}
	w.model = newModel(limits, places, w.now)
	return w
}

// join adds a node of a topic, which lends the places of others or has its own.
func (w *world) join(i int, topic string, places int, lenders ...*worldNode) {
	n := &worldNode{world: w, name: fmt.Sprint("n", i), topic: topic, core: dispatch.NewTopic(topic)}
	n.parts = taking.Taker{Store: &worldStore{world: w}, Now: func() time.Time { return w.now }}
	n.core.Shards([]bool{true})
	n.core.Configure(w.now, 10, w.limits)
	for i, lender := range lenders {
		n.core.Subscribe(w.now, &dispatch.Subscription{ID: sub + int64(i), MaxInFlight: places, Visibility: time.Hour, OnDemand: true})
		lender.core.Link(w.now, sub, n.name)
		n.lenders = append(n.lenders, lender)
	}
	if len(lenders) == 0 {
		n.core.Subscribe(w.now, &dispatch.Subscription{ID: sub, MaxInFlight: places, Visibility: time.Hour})
		n.core.Grant(w.now, sub, places)
	}
	w.nodes = append(w.nodes, n)
	n.pump()
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{w.now.Add(d), w.order, do})
}

// run goes on for some time, and looks at the model every few milliseconds.
func (w *world) run(d time.Duration) error {
	for until := w.now.Add(d); w.now.Before(until) && w.err == nil; {
		next := w.now.Add(5 * time.Millisecond)
		if len(w.events) > 0 && w.events[0].at.Before(next) {
			next = later(w.now, w.events[0].at)
		}
		w.now = next
		w.model.now = next
		for len(w.events) > 0 && !w.events[0].at.After(w.now) {
			heap.Pop(&w.events).(event).do()
		}
		for _, n := range w.nodes {
			n.moves = 0
		}
		w.note(w.model.Advance(w.now))
	}
	return w.err
}

// setClock sets the store's clock, which is that of the world. Nodes see it a few milliseconds later. What is on its way takes
// as long as before.
func (w *world) setClock(by time.Duration) {
	w.now = w.now.Add(by)
	w.model.now = w.now
	for i := range w.events {
		w.events[i].at = w.events[i].at.Add(by)
	}
	for _, n := range w.nodes {
		w.after(3*w.rtt, func() {
			if n.core.Limited() {
				n.core.ClockSet(w.now)
				n.again()
			}
		})
	}
}

func (w *world) note(err error) {
	switch {
	case err == nil:
	case w.first != nil:
		w.first(err)
	case w.err == nil:
		w.err = err
	}
}

// ready makes tasks due at a node.
func (w *world) ready(node int, tasks ...ModelTask) {
	var entries []store.Entry
	for _, t := range tasks {
		w.order++
		if t.Node = node; len(w.nodes[node].lenders) == 1 {
			t.Node = 0
		}
		w.tasks[t.ID] = t
		w.model.Ready(t)
		entries = append(entries, store.Entry{
			ID: t.ID, Due: store.Millis(w.order), Traits: &store.Traits{RateKey: t.RateKey, ConcurrencyKey: t.CapKey},
		})
	}
	n := w.nodes[node]
	n.core.Ready(w.now, 0, entries)
	n.pump()
}

// pump carries out effects until there are none.
func (n *worldNode) pump() {
	if n.pumping {
		return
	}
	n.pumping = true
	defer func() { n.pumping = false }()
	fx := n.core.Effects()
	for _, h := range fx.Hold {
		for i := range h.Tasks {
			if h.Admissions != nil && h.Admissions[i] != nil && !h.Admissions[i].Doomed {
				n.way++
			}
		}
		n.after(2*n.rtt, func() { n.hold(h) })
	}
	for _, call := range fx.Take {
		n.take(call)
	}
	for _, at := range fx.WakeAt {
		n.after(max(0, at.Sub(n.now)), func() { n.core.Tick(n.now, at); n.again() })
	}
	for _, a := range fx.Ask {
		n.node(a.Node).granted(n, a.N)
	}
	for _, v := range fx.Void {
		n.demand(n.lenders[v.Sub-sub], v.N)
	}
	if ready := n.core.Offer(); len(n.lenders) > 0 && (ready > 0 && (n.told == 0 || ready > 2*n.told) || ready == 0 && n.told > 0) {
		n.demand(n.lenders[len(n.lenders)-1], 0)
	}
}

// node is that of a name with the same topic.
func (n *worldNode) node(name string) *worldNode {
	return n.nodes[slices.IndexFunc(n.nodes, func(o *worldNode) bool { return o.name == name && o.topic == n.topic })]
}

// granted is room that a lender gives.
func (n *worldNode) granted(by *worldNode, room int) {
	n.after(n.rtt/2, func() {
		n.moved()
		n.told = max(0, n.told-room)
		n.core.Grant(n.now, sub+int64(slices.Index(n.lenders, by)), room)
		n.again()
	})
}

// demand says to a lender how many tasks could go, and gives back room.
func (n *worldNode) demand(to *worldNode, back int) {
	ready := n.core.Offer()
	n.told = ready
	n.after(n.rtt/2, func() {
		n.moved()
		if back > 0 {
			to.core.Refund(n.now, sub, back)
		}
		to.core.Demand(n.now, sub, n.name, ready)
		to.again()
	})
}

// moved counts messages of credit: those that come to nothing would go to and fro for ever.
func (n *worldNode) moved() {
	if n.moves++; n.moves > 100 {
		n.note(fmt.Errorf("%s: room goes to and fro", n.name))
	}
}

func (n *worldNode) again() {
	if fault := n.core.Check(); fault != "" {
		n.note(fmt.Errorf("%s: %s", n.name, fault))
	}
	n.pump()
}

// take makes a call, as the actor does.
func (n *worldNode) take(call *dispatch.TakeCall) {
	call.Node, call.Until = n.name, store.Millis(n.now.Add(2*time.Hour).UnixMilli())
	for range call.Room {
		n.holder++
		call.Holders = append(call.Holders, store.Token{0: 1, 7: byte(n.holder), 6: byte(n.holder >> 8), 5: byte(n.holder >> 16)})
	}
	answer := func(reply *store.TakeReply) {
		n.pass(reply.Notices)
		n.core.Taken(n.now, &dispatch.Taken{Reply: reply})
		n.again()
	}
	if n.world.parts {
		s := n.parts.Store.(*worldStore)
		n.after(0, func() {
			s.run(func() {
				reply, _ := n.parts.Take(context.Background(), &call.Take)
				n.after(0, func() { answer(reply) })
			})
		})
		return
	}
	var reply *store.TakeReply
	n.after(n.rtt/2, func() { reply, _ = n.store.Take(&call.Take, n.now) })
	n.after(n.rtt, func() { answer(reply) })
}

// pass tells nodes in line that something is there for them.
func (w *world) pass(notices []store.Notice) {
	for _, notice := range notices {
		for _, n := range w.nodes {
			if n.name == notice.Node && n.topic == notice.Topic {
				w.after(w.rtt+notice.After, func() {
					if notice.Limit.Rate {
						n.core.Freed(w.now, nil, []string{notice.Limit.Key.Key})
					} else {
						n.core.Freed(w.now, []string{notice.Limit.Key.Key}, nil)
					}
					n.again()
				})
			}
		}
	}
}

// worldStore is the store: a call takes its time, and what runs waits for it.
type worldStore struct {
	*world
	calls  int
	resume func() (struct{}, bool)
	pause  func(struct{}) bool
}

// run has something run until it makes a call, and go on when that is over.
func (s *worldStore) run(do func()) {
	s.resume, _ = iter.Pull(func(pause func(struct{}) bool) {
		s.pause = pause
		do()
	})
	s.resume()
}

func (s *worldStore) call(do func()) {
	s.calls++
	s.after(s.rtt/2, do)
	s.after(s.rtt, func() { s.resume() })
	s.pause(struct{}{})
}

func (s *worldStore) Reserve(_ context.Context, asked []store.Reservation) (got []store.Tokens, err error) {
	s.call(func() { got, _ = s.store.Reserve(asked, s.now) })
	return got, nil
}

func (s *worldStore) Acquire(_ context.Context, asked []store.Acquire) (got []store.Acquired, err error) {
	s.call(func() { got = s.store.Acquire(asked, s.now) })
	return got, nil
}

func (s *worldStore) Free(_ context.Context, permits []store.Permit) (waiting [][]string, err error) {
	s.call(func() { waiting = s.store.Free(permits, s.now) })
	return waiting, nil
}

// hold is a shard that holds what was assigned: each is held, too late, or doomed.
func (n *worldNode) hold(h dispatch.Hold) {
	var o dispatch.Outcome
	var back []store.Entry
	var unused []*dispatch.Admission
	for i, e := range h.Tasks {
		var a *dispatch.Admission
		if h.Admissions != nil {
			a = h.Admissions[i]
		}
		if a != nil && !a.Doomed {
			n.way--
		}
		var want store.Hold
		a.Apply(&want)
		switch {
		case n.gone[e.ID]:
			n.model.Gone(e.ID)
			if a != nil {
				unused = append(unused, a)
			}
			n.core.Unassign(n.now, h.Address, 1)
			continue
		case a != nil && a.Doomed:
			n.note(n.model.Dead(e.ID, n.way))
			n.core.Unassign(n.now, h.Address, 1)
			continue
		case want.Before != 0 && want.Before <= store.Millis(n.now.UnixMilli()):
			o.Late++
			o.Took = max(o.Took, n.now.Sub(time.UnixMilli(int64(a.Since))))
			back = append(back, e)
			unused = append(unused, a)
			continue
		}
		o.Held++
		if a != nil && a.Since != 0 {
			o.Took = max(o.Took, n.now.Sub(time.UnixMilli(int64(a.Since))))
		}
		n.note(n.model.Start(e.ID))
		n.after(n.took(e.ID), func() {
			n.model.End(e.ID)
			if a != nil && a.Permit != nil {
				n.core.Ended(n.now, []*dispatch.Permit{a.Permit}, nil)
			}
			n.core.Settled(n.now, h.Sub, 1)
			if len(n.lenders) > 0 {
				lender := n.lenders[h.Sub-sub]
				n.again()
				lender.core.Settled(n.now, sub, 1)
				lender.core.Grant(n.now, sub, 1)
				lender.again()
				return
			}
			n.core.Grant(n.now, sub, 1)
			n.again()
		})
	}
	n.core.Held(n.now, 0, o)
	if len(unused) > 0 {
		n.core.Ended(n.now, nil, unused)
	}
	if len(back) > 0 {
		n.core.Unassign(n.now, h.Address, len(back))
		n.core.Ready(n.now, 0, back)
	}
	n.again()
}
