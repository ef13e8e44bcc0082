package relay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func queueTo(topic string) store.Queue { return store.Queue{Class: store.ClassWork, To: topic} }

// next begins a turn and returns the topic of its queue; empty: none can begin.
func (r *Ring) next() string {
	from, _ := r.Next()
	return from.Queue.To
}

func TestQueuesTakeTurns(t *testing.T) {
	r, now := NewRing(), store.Millis(1000)
	for _, topic := range []string{"a", "b", "c", "d", "e", "a"} {
		r.Wake(queueTo(topic))
	}
	var began []string
	for topic := r.next(); topic != ""; topic = r.next() {
		began = append(began, topic)
	}
	if !slices.Equal(began, []string{"a", "b", "c", "d"}) {
		t.Fatalf("at a time are %v", began)
	}
	r.Done(&Outcome{Queue: queueTo("a"), After: 7, Passed: 3, More: true, Closed: true}, now, 0) // goes on behind e
	r.Done(&Outcome{Queue: queueTo("b")}, now, 0)
	if got := r.next(); got != "e" {
		t.Errorf("next is %s", got)
	}
	if from, _ := r.Next(); from != (Start{Queue: queueTo("a"), After: 7, Passed: 3, Fresh: true}) {
		t.Errorf("next is %+v", from)
	}
	r.Wake(queueTo("c")) // in flight
	r.Done(&Outcome{Queue: queueTo("c")}, now, 0)
	if got := r.next(); got != "c" {
		t.Errorf("next is %q", got)
	}
	for _, topic := range []string{"a", "c", "d", "e"} {
		r.Done(&Outcome{Queue: queueTo(topic)}, now, 0)
	}
	if r.Has() || !r.Idle() || r.next() != "" {
		t.Errorf("there is something left: %+v", r)
	}
}

func TestWhatIsRefusedBacksOff(t *testing.T) {
	r, now, q := NewRing(), store.Millis(1000), queueTo("a")
	r.Wake(q)
	last := time.Duration(0)
	for range 12 {
		if r.next() != "a" {
			t.Fatal("its turn does not come")
		}
		r.Done(&Outcome{Queue: q, Left: 1}, now, 1)
		r.Wake(q) // more of it
		at := r.Due(now)
		if wait := time.Duration(at-now) * time.Millisecond; r.next() != "" || wait < last || wait > backOffLast+time.Millisecond {
			t.Fatalf("it waits for %s behind %s", wait, last)
		} else {
			last = wait
		}
		now = at
		r.Due(now)
	}
	if last < backOffLast/2 {
		t.Errorf("it waits for %s at last", last)
	}
}

// What comes into the old out-box may be for another topic than what waits there.
func TestTheOldBoxIsWokenWhileItBacksOff(t *testing.T) {
	r, now, walk := NewRing(), store.Millis(1000), new(Walk)
	r.Wake(OldBox())
	if from, ok := r.Next(); !ok || from != (Start{}) {
		t.Fatalf("it begins with %+v, %t", from, ok)
	}
	r.Done(&Outcome{After: 7, Walk: walk, More: true}, now, 0)
	if from, ok := r.Next(); !ok || from != (Start{After: 7, Walk: walk}) {
		t.Errorf("it goes on with %+v, %t", from, ok)
	}
	r.Done(&Outcome{Left: 1, Walked: true}, now, 0)
	if _, ok := r.Next(); ok || r.Due(now) == 0 || !r.Knows(OldBox()) {
		t.Error("it does not back off")
	}
	r.Wake(OldBox())
	if from, ok := r.Next(); !ok || from != (Start{}) {
		t.Errorf("it is not woken: %+v, %t", from, ok)
	}
	r.Wake(OldBox()) // while it is read
	r.Done(&Outcome{Left: 1, Walked: true}, now, 0)
	if _, ok := r.Next(); !ok {
		t.Error("what came meanwhile is not looked for")
	}
	for range 20 {
		r.Done(&Outcome{Err: errBroken}, now, 1)
		now = r.Due(now)
		r.Due(now)
		r.Next()
	}
	r.Done(&Outcome{Left: 1, Walked: true}, now, 1)
	if wait := time.Duration(r.Due(now)-now) * time.Millisecond; wait < walkAgain || wait > walkAgain+time.Millisecond {
		t.Errorf("it waits for %s at last", wait)
	}
	now = r.Due(now)
	r.Due(now)
	r.Next()
	if r.Done(&Outcome{Walked: true}, now, 0); r.Knows(OldBox()) || r.Has() {
		t.Error("it is not forgotten")
	}
}

func TestAShutQueueWaitsForItsGate(t *testing.T) {
	r, now, q := NewRing(), store.Millis(1000), queueTo("a")
	r.Wake(q)
	r.next()
	r.Done(&Outcome{Queue: q, Shut: true}, now, 0)
	if r.Due(now.Add(time.Hour)) != 0 || r.next() != "" || !r.Has() {
		t.Error("it does not wait")
	}
	if r.Wake(q); r.next() != "" {
		t.Error("more of what waits opens it")
	}
	r.Open(q)
	r.next()
	r.Open(q) // the gate opens before the turn is over that found it shut
	r.Done(&Outcome{Queue: q, Shut: true}, now, 0)
	if r.next() != "a" {
		t.Error("it is not woken")
	}
}

func TestTheGateHandsOutRoom(t *testing.T) {
	g, now := NewGate(), store.Millis(1000)
	free := &store.Topic{Name: "free"}
	if n := g.Admit(free, queueTo("free"), 256, now); n != 256 {
		t.Errorf("a topic without bounds takes %d", n)
	}
	full := &store.Topic{Name: "full", MaxBacklog: 1000}
	one, two := store.Queue{Source: store.Shard{N: 1}, To: "full"}, store.Queue{Source: store.Shard{N: 2}, To: "full"}
	if g.Admit(full, one, 256, now)+g.Admit(full, two, 256, now)+g.Admit(full, one, 256, now) != 0 {
		t.Error("a topic that was not counted takes some")
	}
	if count, wake, next := g.Due(now); !slices.Equal(count, []string{"full"}) || len(wake) != 0 || next != now.Add(countSoonest) {
		t.Errorf("due are %v, %v, next at %d", count, wake, next)
	}
	if woken := g.Counted("full", 1000, now); len(woken) != 0 {
		t.Errorf("a full one wakes %v", woken)
	}
	now = now.Add(countLatest)
	if count, _, _ := g.Due(now); len(count) != 1 {
		t.Error("it is not counted again")
	}
	if woken := g.Counted("full", 900, now); !slices.Equal(woken, []store.Queue{one, two}) {
		t.Errorf("woken are %v", woken)
	}
	if n := g.Admit(full, one, 60, now); n != 60 {
		t.Errorf("%d of 100 are given", n)
	}
	if n := g.Admit(full, two, 256, now); n != 40 {
		t.Errorf("%d of 40 are given", n)
	}
	g.GiveUp("full", 10)
	if n := g.Admit(full, one, 256, now); n != 10 {
		t.Errorf("%d of 10 are given", n)
	}
	if g.Admit(full, one, 256, now) != 0 {
		t.Error("more is given than there was")
	}
	if woken := g.Changed(&store.Topic{Name: "full", MaxBacklog: 2000}, now); !slices.Equal(woken, []store.Queue{one}) {
		t.Errorf("more room wakes %v", woken)
	}
}

func TestThePausedAreWoken(t *testing.T) {
	g, now := NewGate(), store.Millis(1000)
	paused, q := &store.Topic{Name: "a", EnqueuePaused: true}, queueTo("a")
	if g.Admit(paused, q, 1, now) != 0 || len(g.Changed(paused, now)) != 0 {
		t.Error("a paused topic takes some")
	}
	if woken := g.Changed(&store.Topic{Name: "a"}, now); !slices.Equal(woken, []store.Queue{q}) {
		t.Errorf("woken are %v", woken)
	}
	g.Admit(paused, q, 1, now)
	if _, wake, next := g.Due(now); len(wake) != 0 || next != now.Add(pausedLatest) {
		t.Errorf("woken are %v, next at %d", wake, next)
	}
	if _, wake, _ := g.Due(now.Add(pausedLatest)); !slices.Equal(wake, []store.Queue{q}) { // the change was missed
		t.Errorf("woken are %v", wake)
	}
	g.Admit(paused, q, 1, now)
	g.Forget(q)
	if woken := g.Changed(&store.Topic{Name: "a"}, now); len(woken) != 0 {
		t.Errorf("woken are %v", woken)
	}
}

// The clock was an hour ahead, and was put right while one backs off, and one waits for its gate.
func TestAClockThatIsPutRightDelaysNothing(t *testing.T) {
	ahead := store.Millis(3_600_000)
	now := ahead.Add(-time.Hour)
	r := NewRing()
	r.Wake(queueTo("a"))
	r.next()
	r.Done(&Outcome{Queue: queueTo("a"), Err: errors.New("down")}, ahead, 1)
	if r.Due(now); r.next() != "a" {
		t.Error("a queue backs off for an hour")
	}

	g, full := NewGate(), &store.Topic{Name: "full", MaxBacklog: 1000}
	g.Admit(full, queueTo("full"), 1, ahead)
	g.Due(ahead)
	g.Counted("full", 1000, ahead)
	if count, _, _ := g.Due(now); len(count) != 1 {
		t.Error("a topic is not counted for an hour")
	}
	g.Counted("full", 0, ahead)
	if g.Admit(full, queueTo("full"), 1, now) != 0 {
		t.Error("a count of a time to come is taken for one of now")
	}
}

// Whatever happens, a queue that has something gets its turn once nothing is in its way any more, and nothing is given
// that was not there.
func TestNoQueueIsForgotten(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		ring, gate, now := NewRing(), NewGate(), store.Millis(1000)
		topic := &store.Topic{Name: "a", MaxBacklog: 10}
		left, pending := make(map[store.Queue]int), 0
		var queues []store.Queue
		for i := range 6 {
			queues = append(queues, store.Queue{Source: store.Shard{N: i}, Class: store.ClassWork, To: "a"})
		}
		wake := func(some []store.Queue) {
			for _, q := range some {
				ring.Open(q)
			}
		}
		step := func(calm bool) {
			now = now.Add(time.Duration(random.IntN(200)) * time.Millisecond)
			if random.IntN(3) == 0 || calm {
				pending = 0
			}
			count, woken, _ := gate.Due(now)
			wake(woken)
			for range count {
				wake(gate.Counted("a", int64(pending), now))
			}
			ring.Due(now)
			from, ok := ring.Next()
			if !ok {
				return
			}
			out, n := &Outcome{Queue: from.Queue}, gate.Admit(topic, from.Queue, 5, now)
			made := min(n, left[from.Queue])
			switch fails := !calm && random.IntN(5) == 0; {
			case n == 0:
				out.Shut = left[from.Queue] > 0
			case fails:
				gate.GiveUp("a", n)
				out.Err = fmt.Errorf("broken")
			default:
				gate.GiveUp("a", n-made)
				left[from.Queue] -= made
				pending += made
				out.More = left[from.Queue] > 0
			}
			ring.Done(out, now, random.Float64())
		}
		for range 300 {
			switch random.IntN(6) {
			case 0:
				q := queues[random.IntN(len(queues))]
				left[q] += random.IntN(20)
				ring.Wake(q)
			case 1:
				next := *topic
				next.EnqueuePaused = random.IntN(2) == 0
				topic = &next
				if random.IntN(3) > 0 { // some changes are missed
					wake(gate.Changed(topic, now))
				}
			default:
				step(false)
			}
		}
		next := *topic
		next.EnqueuePaused = false
		topic = &next
		for range 2000 {
			step(true)
		}
		for q, n := range left {
			if n > 0 {
				t.Fatalf("seed %d: %d messages of queue %d are left", seed, n, q.Source.N)
			}
		}
	}
}
