package actors_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
)

const (
	simTopic = "sim"
	simAway  = "away" // has steps and children of workflows, and nothing else
)

// simClient is somebody with a ledger.
type simClient struct {
	s      *sim
	name   string
	calls  uint64
	events []history.Event
}

// client returns the books of a name.
func (s *sim) client(name string) *simClient {
	c := s.books[name]
	if c == nil {
		c = &simClient{s: s, name: name}
		s.books[name] = c
		c.write(history.Event{Kind: history.Opened})
	}
	return c
}

// write adds an event to the ledger. The time of day of what is about a task is that of the task's
// primary, so that it is judged by the clock it is due by.
func (c *simClient) write(e history.Event) {
	now := time.Now()
	e.Client, e.Mono, e.Wall = c.name, now.Sub(c.s.start).Nanoseconds()+1, now.UnixNano()
	if e.Task != "" {
		e.Wall += c.s.ahead(c.s.shardOf(e.Task)).Nanoseconds()
		if e.Topic == "" {
			e.Topic = c.s.shardOf(e.Task).Topic
		}
	}
	c.events = append(c.events, e)
	c.s.log("%s: %s %s %s %s %s attempt %d due %d hold %d", c.name, e.Kind, e.Op, e.Task, e.Result, e.Reason, e.Attempt, e.Due, e.HoldMS)
}

// ask writes down a call, and returns how to write down its answer.
func (c *simClient) ask(e history.Event) (answer func(history.Event, error)) {
	c.calls++
	e.Kind, e.Call = history.Call, c.calls
	c.write(e)
	return func(a history.Event, err error) {
		a.Kind, a.Call, a.Op, a.Task, a.Token = history.Answer, e.Call, e.Op, e.Task, e.Token
		if a.Result == "" {
			a.Result = history.OK
		}
		if err != nil {
			a.Result, a.Reason = simOutcome(err)
		}
		c.write(a)
	}
}

// delivered writes down a task that came in.
func (c *simClient) delivered(d subscription.Delivery) {
	c.s.handed = time.Now()
	c.write(history.Event{
		Kind: history.Delivered, Task: d.Task.ID, Attempt: d.Task.Attempt, Token: hex.EncodeToString(d.Token),
		HoldMS: d.HoldFor.Milliseconds(), Due: int64(d.Task.Due), Sum: string(d.Task.Payload),
	})
}

// simOutcome says what an error makes of a call.
func simOutcome(err error) (history.Result, string) {
	var e *problem.Error
	if !errors.As(err, &e) {
		return history.Unknown, err.Error()
	}
	switch e.Kind {
	case problem.Unknown, problem.Deadline, problem.Canceled, problem.Internal:
		return history.Unknown, e.Reason
	}
	return history.Refused, e.Reason
}

// call makes a call at a node that waits for its answer. A node that dies gives none.
func (c *simClient) call(n *simNode, e history.Event, do func(ctx context.Context) (history.Event, error)) {
	answer := c.ask(e)
	s := c.s
	var got history.Event
	s.after(s.lag(), func() {
		if n.dead.Load() || !n.up {
			return
		}
		n.whenAwake(func() {
			s.spawn(n, func() (err error) {
				ctx, cancel := n.timeout()
				defer cancel()
				got, err = do(ctx)
				return err
			}, func(err error) {
				if s.chance(s.plan.loseAnswer) {
					return
				}
				s.after(s.lag(), func() { answer(got, err) })
			})
		})
	})
}

// simTask is a task that somebody enqueues.
type simTask struct {
	id      string
	when    service.When
	retries int
	traits  *store.Traits
	expires time.Duration // after it is due; 0: it does not
}

// produce lets producers work until the plan's end.
func (s *sim) produce() {
	made := 0
	var next func()
	next = func() {
		if time.Since(s.start) > s.plan.active {
			return
		}
		for range int(math.Ceil(s.weight(simProduces) * float64(1+s.rng.IntN(s.plan.burst)))) {
			made++
			s.enqueue(s.newTask(made), 0)
		}
		if s.plan.herd > 0 && s.does(simProduces, 0.1) {
			when := s.newTask(0).when
			for range s.plan.herd {
				made++
				t := s.newTask(made)
				t.when = when
				s.enqueue(t, 0)
			}
		}
		s.after(s.between(0, 2*s.plan.pace), next)
	}
	s.after(time.Second, next)
}

func (s *sim) newTask(n int) simTask {
	t := simTask{id: fmt.Sprintf("t%d", n), retries: s.rng.IntN(5)}
	if s.chance(0.4) {
		t.traits = &store.Traits{Priority: s.rng.IntN(3), FairnessKey: string(rune('a' + s.rng.IntN(3)))}
	}
	if s.chance(0.4) {
		if t.traits == nil {
			t.traits = new(store.Traits)
		}
		t.traits.OrderingKey = string(rune('x' + s.rng.IntN(3)))
		t.id = simOrderedID(t.traits.OrderingKey, n)
	}
	if l := &s.plan.limits; s.plan.policies {
		s.keyed(&t)
	} else if l.KeyConcurrency > 0 || l.KeyRate.Limited() {
		if t.traits == nil {
			t.traits = new(store.Traits)
		}
		t.traits.RateKey = string(rune('k' + s.rng.IntN(3)))
		t.traits.ConcurrencyKey = t.traits.RateKey
	}
	t.expires = s.drawExpiry()
	switch r := s.rng.IntN(10); {
	case r < 2: // at once
	case r < 5:
		t.when.Delay = s.between(time.Millisecond, 500*time.Millisecond)
	case r < 8:
		t.when.Delay = s.between(time.Millisecond, 10*time.Second)
	default:
		t.when.Delay = s.between(time.Second, s.plan.farthest)
	}
	return t
}

// enqueue asks some node for a task, and again with the same id when the outcome is
// not known.
func (s *sim) enqueue(t simTask, tries int) {
	n := s.anyNode()
	c := s.client(fmt.Sprintf("producer%d", s.rng.IntN(2)))
	if n == nil {
		return
	}
	sum := "p" + t.id
	due := s.now(s.shardOf(t.id)).Add(t.when.Delay)
	e := history.Event{Op: history.Enqueue, Task: t.id, Due: int64(due), Sum: sum, Attempts: t.retries + 1}
	if t.traits != nil {
		e.Key = t.traits.RateKey
	}
	settled := false
	s.order.asked(t.id, t.traits)
	c.call(n, e, func(ctx context.Context) (history.Event, error) {
		out, err := n.use.Tasks.Enqueue(ctx, []service.NewTask{{
			Topic: simTopic, When: t.when, ExpireAfter: t.expires,
			Task: store.Task{ID: t.id, Payload: []byte(sum), MaxRetries: t.retries, Traits: t.traits},
		}})
		if err != nil {
			return history.Event{}, err
		}
		if out[0].Err != nil {
			return history.Event{}, out[0].Err
		}
		settled = true
		s.arrive(func() {
			s.order.stored(t.id, out[0].Due)
			s.expiring(t.id, out[0].Due, t.expires)
		})
		a := history.Event{Due: int64(out[0].Due), Replaced: simReplaced(out[0].Replaced)}
		if out[0].Deduplicated {
			a.Result = history.Already
		}
		return a, nil
	})
	s.after(s.plan.callTimeout+time.Second, func() {
		if !settled && tries < 2 && s.chance(0.5) {
			s.enqueue(t, tries+1)
		}
	})
	if s.twin == nil && s.does(simMeddles, 0.1) {
		s.after(s.aimed(t), func() { s.meddle(t) })
	}
}

// simReplaced is what an enqueue says of the task in whose place the new one came.
func simReplaced(was store.State) string {
	if was == store.StateUnknown {
		return ""
	}
	return was.String()
}

// meddle deletes or moves a task.
func (s *sim) meddle(t simTask) {
	n := s.anyNode()
	if n == nil {
		return
	}
	s.order.meddled(t.id)
	s.dead.expires[t.id] = store.MaxDue
	c := s.client("meddler")
	if s.chance(0.5) {
		c.call(n, history.Event{Op: history.Delete, Task: t.id}, func(ctx context.Context) (history.Event, error) {
			_, err := n.use.Tasks.Delete(ctx, simTopic, t.id)
			return history.Event{}, err
		})
		return
	}
	w := service.When{At: s.now(s.shardOf(t.id)).Add(s.between(time.Millisecond, 8*time.Second))}
	c.call(n, history.Event{Op: history.Reschedule, Task: t.id, Due: int64(w.At)}, func(ctx context.Context) (history.Event, error) {
		edited, err := n.use.Tasks.Reschedule(ctx, simTopic, t.id, w, 0)
		return history.Event{Due: int64(edited.Due)}, err
	})
}

// anyNode is a node that could be asked, nil when there is none.
func (s *sim) anyNode() *simNode {
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	if n.dead.Load() || !n.up {
		return nil
	}
	return n
}

// simWorker is a worker on a stream, and its Outbox at the node.
type simWorker struct {
	s     *sim
	node  *simNode
	k     int
	topic string
	c     *simClient
	sub   *service.Subscription
	gone  atomic.Bool // the stream is over
	in    time.Time   // when the last frame arrives
	seq   uint64

	granted, sent int // credit that the node was told of, and tasks that it sent
	drained       bool

	asks map[uint64]func(history.Event, error)
}

// startWorker opens a stream.
func (s *sim) startWorker(n *simNode, k int) {
	if n.dead.Load() {
		return
	}
	w := &simWorker{s: s, node: n, k: k, topic: simTopic, c: s.client(fmt.Sprintf("worker%d.%d", n.i, k)), asks: map[uint64]func(history.Event, error){}}
	if k >= s.plan.workers {
		w.topic = s.topics()[1+k-s.plan.workers]
	}
	credit := s.plan.credit
	n.whenAwake(func() {
		s.spawn(n, func() (err error) {
			ctx, cancel := n.timeout()
			defer cancel()
			w.sub, err = n.use.Delivery.Subscribe(ctx, subscription.Options{Topic: w.topic, Worker: w.c.name, MaxInFlight: credit}, w)
			return err
		}, func(err error) {
			if err != nil {
				s.after(time.Second, func() { s.startWorker(n, k) })
				return
			}
			n.workers = append(n.workers, w)
			w.grantNow(credit)
			if s.plan.stays > 0 {
				s.after(s.between(0, 2*s.plan.stays), w.leave)
			}
		})
	})
}

// lose ends the stream without a word; what is on the way is lost.
func (w *simWorker) lose() { w.gone.Store(true) }

// leave ends the stream in order, and another one begins in a while.
func (w *simWorker) leave() {
	if w.node.dead.Load() || w.gone.Swap(true) {
		return
	}
	w.s.log("%s leaves", w.c.name)
	w.node.whenAwake(func() { w.sub.Unsubscribe(nil) })
	w.s.after(w.s.between(0, time.Second+2*w.s.plan.idle), func() { w.s.startWorker(w.node, w.k) })
}

// crashWorker ends the stream, and opens another one in a while.
func (s *sim) crashWorker(w *simWorker) {
	if w.gone.Swap(true) {
		return
	}
	s.log("%s crashes", w.c.name)
	n := w.node
	s.after(s.between(time.Millisecond, time.Second), func() {
		if !n.dead.Load() {
			n.whenAwake(func() { w.sub.Unsubscribe(nil) })
		}
	})
	s.after(s.between(time.Second, 3*time.Second), func() { s.startWorker(n, w.k) })
}

func (w *simWorker) Deliver(ds []subscription.Delivery) bool {
	if w.gone.Load() {
		return false
	}
	sent := time.Now()
	w.s.leaves(w.c.name, ds)
	w.sent += len(ds)
	w.s.arrive(func() {
		w.in = later(w.in, time.Now().Add(w.s.lag()))
		w.s.at(w.in, func() {
			for _, d := range ds {
				if !w.gone.Load() {
					w.receive(d, sent)
				}
			}
		})
	})
	return true
}

func (w *simWorker) Cancel([]subscription.CancelAsk) {}

func (w *simWorker) Settled(sequence uint64, results []subscription.Settled) {
	if w.gone.Load() {
		return
	}
	w.s.arrive(func() {
		w.s.after(w.s.lag(), func() {
			if answer := w.asks[sequence]; answer != nil && !w.gone.Load() {
				delete(w.asks, sequence)
				answer(settledAnswer(results))
			}
		})
	})
}

func settledAnswer(results []subscription.Settled) (history.Event, error) {
	r := results[0]
	if r.Err != nil {
		return history.Event{}, r.Err
	}
	a := history.Event{HoldMS: r.HoldFor.Milliseconds(), Due: int64(r.Due)}
	if r.Already {
		a.Result = history.Already
	}
	return a, nil
}

func (w *simWorker) Demand(int, int) {}

// NodesChanged does not come: the subscription is not on demand.
func (w *simWorker) NodesChanged() {}

func (w *simWorker) Drain(time.Duration) {
	if w.node.dead.Load() {
		return
	}
	w.drained = true
	w.s.arrive(func() {
		w.s.after(w.s.between(0, time.Second), func() {
			w.leave()
		})
	})
}

// receive is what a worker does with a task.
func (w *simWorker) receive(d subscription.Delivery, sent time.Time) {
	s := w.s
	w.c.delivered(d)
	s.gets(d.Task.ID)
	s.received(d, sent, w.s.plan.visibility)
	if s.twin != nil {
		w.twinReceive(d)
		return
	}
	calm := time.Since(s.start) > s.plan.active
	quick := s.between(0, 200*time.Millisecond)
	r := s.rng.IntN(100)
	switch fails := s.weight(simFails); {
	case s.weight(simSettles) == 0 && r > 10: // nobody does
		r = 99
	case fails < 1 && float64(r-60) > 40*fails:
		r = 0
	case fails > 1:
		r = int(60 - 60/fails + float64(r)/fails)
	}
	switch {
	case calm || r < 60:
		s.after(quick, func() { w.settle(d, history.Ack) })
	case r < 70:
		s.after(quick, func() { w.settle(d, history.Nack) })
	case r < 74:
		s.after(quick, func() { w.settle(d, history.Release) })
	case r < 79: // longer than the hold, but it says so
		s.after(d.HoldFor/2, func() { w.settle(d, history.Extend) })
		s.after(d.HoldFor+quick, func() { w.settle(d, history.Ack) })
	case r < 84: // again, as if the answer was lost
		s.after(quick, func() { w.settle(d, history.Ack) })
		s.after(quick+s.between(time.Millisecond, time.Second), func() { w.ask(d, history.Ack) })
	case r < 90: // just about too late
		s.after(d.HoldFor-time.Since(sent)+s.between(-50*time.Millisecond, 50*time.Millisecond), func() { w.settle(d, history.Ack) })
	case r < 93:
		s.after(d.HoldFor+s.between(time.Second, 5*time.Second), func() { w.settle(d, history.Ack) })
	default: // never
		s.after(d.HoldFor, w.grant)
	}
}

// grant asks for another task in the place of one.
func (w *simWorker) grant() {
	if !w.gone.Load() && !w.node.dead.Load() {
		w.node.whenAwake(func() { w.grantNow(1) })
	}
}

func (w *simWorker) grantNow(n int) {
	w.granted += n
	_ = w.sub.Grant(n)
}

// settle ends a hold, and makes room for another task, or extends it.
func (w *simWorker) settle(d subscription.Delivery, op history.Op) {
	w.ask(d, op)
	if op != history.Extend {
		w.grant()
	}
}

// ask settles or extends, over the stream or at another node.
func (w *simWorker) ask(d subscription.Delivery, op history.Op) {
	s := w.s
	if w.gone.Load() {
		return
	}
	if op != history.Extend {
		s.order.settled(d.Task.ID)
	}
	var next []service.NewTask
	if op == history.Ack {
		next = s.nextOf(w)
	}
	a := subscription.Settlement{ID: d.Task.ID, Token: d.Token}
	e := history.Event{Op: op, Task: d.Task.ID, Token: hex.EncodeToString(d.Token)}
	switch op {
	case history.Ack:
		a.Kind = subscription.SettleAck
	case history.Nack:
		a.Kind = subscription.SettleNack
		how := s.rng.IntN(4)
		if s.twin != nil {
			how = 2
		}
		switch how {
		case 0:
			a.Permanent, e.Final = true, true
		case 1:
			delay := s.between(0, 3*time.Second).Truncate(time.Millisecond)
			a.Delay, e.DelayMS = &delay, delay.Milliseconds()
		}
	case history.Release:
		a.Kind = subscription.SettleRelease
	case history.Extend:
		a.Kind = subscription.SettleExtend
	}
	if other := s.anyNode(); op != history.Extend && s.chance(0.2) && other != nil {
		w.c.call(other, e, func(ctx context.Context) (history.Event, error) {
			got, err := s.callNext(ctx, other, w.topic, a, next)
			s.arrive(func() { s.half(e.Task, next, &got, err) })
			return got, err
		})
	} else {
		w.seq++
		seq := w.seq
		answer := w.c.ask(e)
		w.asks[seq] = func(got history.Event, err error) {
			s.half(e.Task, next, &got, err)
			answer(got, err)
		}
		s.after(s.lag(), func() {
			if !w.gone.Load() && !w.node.dead.Load() {
				w.node.whenAwake(func() { w.settleNext(seq, a, next) })
			}
		})
	}
}
