package dispatch_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

func bucket(n int, per time.Duration, burst int) store.Rate {
	return store.Rate{Count: n, Period: per, Burst: burst}
}

func window(n int, per time.Duration) store.Rate {
	return store.Rate{Kind: store.SlidingWindow, Count: n, Period: per}
}

func tasks(prefix string, n int, kind func(i int) ModelTask) (all []ModelTask) {
	for i := range n {
		t := kind(i)
		t.ID = fmt.Sprintf("%s%04d", prefix, i)
		all = append(all, t)
	}
	return all
}

var numbers = regexp.MustCompile(`[0-9.]+(ms|s|h|m)?|[a-z]+[0-9]{4}`)

// play runs a scenario to its end, whatever happens, and reports the faults by kind.
func play(t *testing.T, w *world, d time.Duration) {
	t.Helper()
	kinds, longest := map[string]int{}, time.Duration(0)
	var sample error
	w.first = func(err error) {
		if kinds[numbers.ReplaceAllString(err.Error(), "N")]++; sample == nil {
			sample = err
		}
	}
	_ = w.run(d)
	longest = w.model.longest
	t.Logf("after %v: %d started, %d dead (%d of them wrongly), %d wait; longest that one had all it needs and did not go: %v",
		d, w.model.started, w.model.dead, w.model.deadWrong, len(w.model.waiting), longest)
	if sample != nil {
		t.Errorf("first fault: %v", sample)
	}
}

// TestBurstBesideACap: a burst over the rate once throttled the topic to a task a second for good, as tasks that
// were dead letters kept their claims to permits.
func TestBurstBesideACap(t *testing.T) {
	w := newWorld(store.TopicLimits{Rate: bucket(20, time.Second, 20), Concurrency: 2, DeadLetter: true}, 1, 16)
	w.ready(0, tasks("a", 70, func(int) ModelTask { return ModelTask{} })...)
	play(t, w, 10*time.Second)
}

// TestDeadLettersLeaveNothingBehind has handlers that take as long as the store, and looks at what comes later.
func TestDeadLettersLeaveNothingBehind(t *testing.T) {
	w := newWorld(store.TopicLimits{Rate: bucket(20, time.Second, 20), Concurrency: 2, DeadLetter: true}, 1, 16)
	w.took = func(string) time.Duration { return 10 * time.Millisecond }
	w.ready(0, tasks("a", 100, func(int) ModelTask { return ModelTask{} })...)
	play(t, w, 10*time.Second)
	left := w.model.waiting
	for i := range 8 {
		w.ready(0, ModelTask{ID: fmt.Sprintf("p%04d", i)})
		_ = w.run(300 * time.Millisecond)
	}
	t.Logf("eight probes later %d wait (%d before)", len(w.model.waiting), len(left))
}

// TestAQuietKeyPassesABacklog: tasks of a key that waited for tokens once held claims to all permits of the topic.
func TestAQuietKeyPassesABacklog(t *testing.T) {
	w := newWorld(store.TopicLimits{KeyRate: bucket(10, time.Second, 10), Concurrency: 5}, 1, 16)
	w.ready(0, tasks("noisy", 500, func(int) ModelTask { return ModelTask{RateKey: "noisy"} })...)
	w.first = func(error) {}
	_ = w.run(2 * time.Second)
	w.ready(0, tasks("quiet", 5, func(int) ModelTask { return ModelTask{RateKey: "quiet"} })...)
	play(t, w, 10*time.Second)
}

// TestWindowsBesideACap: tokens of windows once ended while their tasks waited for permits.
func TestWindowsBesideACap(t *testing.T) {
	w := newWorld(store.TopicLimits{KeyRate: window(10, time.Second), Concurrency: 5}, 1, 16)
	w.took = func(string) time.Duration { return 10 * time.Millisecond }
	w.ready(0, tasks("a", 300, func(i int) ModelTask { return ModelTask{RateKey: fmt.Sprint("r", i%10)} })...)
	play(t, w, 10*time.Second)
}

// TestAWindowGoesWhereTheStoreIsFar: its tokens ended before a hold could come, were given back, and taken again, for ever.
func TestAWindowGoesWhereTheStoreIsFar(t *testing.T) {
	for _, limits := range []store.TopicLimits{
		{Rate: window(10, 100*time.Millisecond)}, {KeyRate: window(10, 100*time.Millisecond)},
		{Rate: window(10, 100*time.Millisecond), Concurrency: 4}, {Rate: bucket(1000, time.Second, 10), KeyRate: window(10, 100*time.Millisecond)},
	} {
		w := newWorld(limits, 2, 16)
		w.rtt = 5 * time.Millisecond
		w.ready(0, tasks("a", 100, func(int) ModelTask { return ModelTask{RateKey: "k"} })...)
		if err := w.run(3 * time.Second); err != nil { // by the limits they take a second
			t.Errorf("%+v: %v", limits, err)
		}
		if w.model.started < 100 {
			t.Errorf("%+v: %d of 100 have started", limits, w.model.started)
		}
	}
}

// TestATokenThatComesBackGoesToTheNext: another task waits for it here, and was told to ask in an hour.
func TestATokenThatComesBackGoesToTheNext(t *testing.T) {
	for _, limits := range []store.TopicLimits{{KeyRate: bucket(1, time.Hour, 1)}, {Rate: window(1, time.Hour)}} {
		w := newWorld(limits, 1, 16)
		w.gone["a0000"] = true
		w.ready(0, tasks("a", 2, func(int) ModelTask { return ModelTask{RateKey: "k"} })...)
		if err := w.run(time.Second); err != nil || w.model.started != 1 {
			t.Errorf("%+v: %d have started, want 1: %v", limits, w.model.started, err)
		}
	}
}

// TestARareRateOfKeys: tokens were once taken while no worker was free, and lost: a key waited an hour more.
func TestARareRateOfKeys(t *testing.T) {
	w := newWorld(store.TopicLimits{KeyRate: bucket(1, time.Hour, 1)}, 1, 1)
	w.took = func(string) time.Duration { return 500 * time.Millisecond }
	w.ready(0, tasks("a", 12, func(i int) ModelTask { return ModelTask{RateKey: fmt.Sprint("k", i)} })...)
	play(t, w, 20*time.Second)
}

func TestARareRateOfATopic(t *testing.T) {
	w := newWorld(store.TopicLimits{Rate: bucket(1, 5*time.Second, 1)}, 1, 1)
	w.took = func(string) time.Duration { return 5700 * time.Millisecond }
	w.ready(0, tasks("a", 8, func(int) ModelTask { return ModelTask{} })...)
	play(t, w, 40*time.Second)
}

// TestWhoWaitsForAPermitIsNotLate: tasks that waited for a permit were once dead letters for that.
func TestWhoWaitsForAPermitIsNotLate(t *testing.T) {
	w := newWorld(store.TopicLimits{Rate: bucket(20, time.Second, 20), Concurrency: 2, DeadLetter: true}, 1, 16)
	w.took = func(string) time.Duration { return 100 * time.Millisecond } // so that the rate is not what they wait for
	w.ready(0, tasks("a", 100, func(int) ModelTask { return ModelTask{} })...)
	play(t, w, 6*time.Second)
}

// A cap of the namespace is as that of the topic.
func TestAQuietKeyPassesABacklogInANamespace(t *testing.T) {
	w := newWorld(store.TopicLimits{KeyRate: bucket(10, time.Second, 10), Namespace: 5}, 1, 16)
	w.ready(0, tasks("noisy", 500, func(int) ModelTask { return ModelTask{RateKey: "noisy"} })...)
	w.first = func(error) {}
	_ = w.run(2 * time.Second)
	w.ready(0, tasks("quiet", 5, func(int) ModelTask { return ModelTask{RateKey: "quiet"} })...)
	play(t, w, 10*time.Second)
}

// TestOneTaskOfAWindowIsNoDeadLetter: its own token once ended while it asked for its permit.
func TestOneTaskOfAWindowIsNoDeadLetter(t *testing.T) {
	w := newWorld(store.TopicLimits{Rate: window(1, 200*time.Millisecond), Concurrency: 1, DeadLetter: true}, 1, 1)
	w.ready(0, ModelTask{ID: "a0000"})
	play(t, w, time.Second)
	if w.model.started != 1 {
		t.Error("it did not start")
	}
}

func TestNodesHaveTheirTurns(t *testing.T) { // a rare rate: each node has its turn
	w := newWorld(store.TopicLimits{Rate: bucket(1, time.Second, 1)}, 2, 2)
	w.ready(0, tasks("a", 20, func(int) ModelTask { return ModelTask{} })...)
	w.ready(1, tasks("b", 20, func(int) ModelTask { return ModelTask{} })...)
	play(t, w, 20*time.Second)
	a, b := 0, 0
	for id := range w.model.waiting {
		if id[0] == 'a' {
			a++
		} else {
			b++
		}
	}
	t.Logf("node 0 had %d, node 1 had %d", 20-a, 20-b)
}

// TestACapThatBecomesFreeElsewhere has many holds of another node end at once: who waits here once took one permit a round trip.
func TestACapThatBecomesFreeElsewhere(t *testing.T) {
	for name, limits := range map[string]store.TopicLimits{
		"of the topic":           {Concurrency: 100},
		"of the namespace":       {Namespace: 100},
		"of a key":               {KeyConcurrency: 100},
		"of a key, by rate keys": {KeyConcurrency: 100, KeyRate: bucket(1, time.Hour, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(limits, 2, 100)
			w.took = func(string) time.Duration { return time.Second }
			of := func(prefix string) []ModelTask {
				return tasks(prefix, 100, func(i int) ModelTask { return ModelTask{CapKey: "c", RateKey: fmt.Sprint(prefix, i)} })
			}
			w.ready(0, of("a")...)
			_ = w.run(100 * time.Millisecond)
			w.ready(1, of("b")...)
			play(t, w, 2*time.Second)
			if w.model.started != 200 {
				t.Errorf("%d of 200 started", w.model.started)
			}
		})
	}
}

// TestDeadLettersOfAKeyDelayNobody: those over a rate take no permit, and were once asked for one by one where no more was known
// of their cap. One that had all waited behind them.
func TestDeadLettersOfAKeyDelayNobody(t *testing.T) {
	w := newWorld(store.TopicLimits{KeyRate: bucket(1, time.Hour, 1), KeyConcurrency: 1, DeadLetter: true}, 1, 2)
	w.took = func(string) time.Duration { return 10 * time.Millisecond }
	w.ready(0, tasks("a", 100, func(int) ModelTask { return ModelTask{RateKey: "r", CapKey: "c"} })...)
	w.ready(0, ModelTask{ID: "b0000", RateKey: "q", CapKey: "c"})
	play(t, w, time.Second)
	if w.model.started != 2 {
		t.Errorf("%d of 2 started", w.model.started)
	}
}

// TestDeadLettersOfAnotherNodeDelayNobody: a node that was lent a place has many tasks over their rate, and the one that
// lends it has tasks that could go.
func TestDeadLettersOfAnotherNodeDelayNobody(t *testing.T) {
	for _, places := range []int{1, 2, 8} {
		w := newLendingWorld(store.TopicLimits{KeyRate: bucket(1, time.Hour, 1), DeadLetter: true}, 2, places)
		w.ready(1, tasks("over", 200, func(int) ModelTask { return ModelTask{RateKey: "busy"} })...)
		_ = w.run(20 * time.Millisecond)
		w.ready(0, tasks("own", 20, func(i int) ModelTask { return ModelTask{RateKey: fmt.Sprint("quiet", i)} })...)
		play(t, w, 5*time.Second)
		if w.model.started != 21 || w.model.dead != 199 {
			t.Errorf("%d places: %d of 21 started, and %d of 199 are dead letters", places, w.model.started, w.model.dead)
		}
	}
}

// TestWhoLendsItsRoomHasItsTurn: a node lends the places of its workers to one that has a backlog under the cap of the topic,
// and now and then has a task of its own.
func TestWhoLendsItsRoomHasItsTurn(t *testing.T) {
	for _, places := range []int{1, 2, 8} {
		for limit := 1; limit <= 3; limit++ {
			w := newLendingWorld(store.TopicLimits{Concurrency: limit}, 2, places)
			w.took = func(string) time.Duration { return 100 * time.Millisecond }
			w.ready(1, tasks("backlog", 300, func(int) ModelTask { return ModelTask{} })...)
			play(t, w, 300*time.Millisecond)
			for i := range 10 {
				own := fmt.Sprint("own", i)
				w.ready(0, ModelTask{ID: own})
				if play(t, w, 300*time.Millisecond); w.model.waiting[own] != nil { // two others have gone before it, at most
					t.Errorf("%d places, a cap of %d: %s waits for more than two handlers", places, limit, own)
				}
			}
		}
	}
}

// Draws.

func drawRate(t *rapid.T, name string) store.Rate {
	n := rapid.SampledFrom([]int{1, 3, 10, 50}).Draw(t, name+" count")
	per := rapid.SampledFrom([]time.Duration{200 * time.Millisecond, time.Second, 5 * time.Second}).Draw(t, name+" period")
	switch rapid.SampledFrom([]string{"none", "bucket", "window"}).Draw(t, name) {
	case "bucket":
		return bucket(n, per, rapid.SampledFrom([]int{1, n}).Draw(t, name+" burst"))
	case "window":
		return window(n, per)
	}
	return store.Rate{}
}

func drawLimits(t *rapid.T) store.TopicLimits {
	most := func(name string) int { return rapid.SampledFrom([]int{0, 0, 1, 2, 5, 20}).Draw(t, name) }
	l := store.TopicLimits{
		Rate: drawRate(t, "rate"), KeyRate: drawRate(t, "key rate"),
		Concurrency: most("cap"), KeyConcurrency: most("key cap"), Namespace: most("namespace cap"),
	}
	l.DeadLetter = rapid.IntRange(0, 3).Draw(t, "over limit") == 0
	return l
}

// drawHandlers draws how long the handlers of tasks take, by their ids.
func drawHandlers(t *rapid.T) func(id string) time.Duration {
	lengths := rapid.SliceOfN(rapid.SampledFrom([]int{0, 10, 100, 600}), 1, 4).Draw(t, "handlers")
	return func(id string) time.Duration {
		return time.Duration(lengths[int(id[len(id)-1])%len(lengths)]) * time.Millisecond
	}
}

// TestLimitsOweAndAllow plays any mix of limits, tasks, handlers, places and nodes.
func TestLimitsOweAndAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { playMix(t, drawLimits(t), newWorld, false) })
}

// TestTakeInPartsOwesAndAllows plays them against a store that has no Take. Some things cannot be so there, as calls are
// not one step: with two rates a verdict may be of a moment before, and nodes that take of both at once lose tokens,
// for periods; with dead letters or several nodes a task may wait for longer than it should. No limit is ever exceeded.
func TestTakeInPartsOwesAndAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		limits.DeadLetter = limits.DeadLetter && !(limits.Rate.Limited() && limits.KeyRate.Limited())
		playMix(t, limits, newWorld, true)
	})
}

// TestLentRoomOwesAndAllows has all workers at one node, whose room the others lend.
func TestLentRoomOwesAndAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t)
		playMix(t, limits, newLendingWorld, false)
	})
}

// TestTopicsOfANamespaceUseItsQuota has topics of one namespace at nodes of which the last has no workers. There is room at
// workers for all that the quota lets go.
func TestTopicsOfANamespaceUseItsQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topics, nodes := rapid.IntRange(1, 12).Draw(t, "topics"), rapid.IntRange(1, 3).Draw(t, "nodes")
		limits := store.TopicLimits{Namespace: rapid.SampledFrom([]int{1, 2, 5, 19}).Draw(t, "quota")}
		w := newNamespaceWorld(limits, topics, nodes, 64)
		w.took = drawHandlers(t)
		busy, total := rapid.IntRange(1, len(w.nodes)).Draw(t, "busy"), 0
		t.Repeat(map[string]func(*rapid.T){
			"ready": func(t *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(t, "times") {
					w.ready(rapid.IntRange(0, busy-1).Draw(t, "where"), tasks(fmt.Sprint("t", total, "x"), rapid.IntRange(1, 5).Draw(t, "n"), func(int) ModelTask { return ModelTask{} })...)
					total++
				}
			},
			"": func(t *rapid.T) {
				if err := w.run(time.Duration(rapid.SampledFrom([]int{5, 100, 400}).Draw(t, "ms")) * time.Millisecond); err != nil {
					t.Fatalf("%d topics on %d nodes, a quota of %d: %v", topics, nodes, limits.Namespace, err)
				}
			},
		})
	})
}

func playMix(t *rapid.T, limits store.TopicLimits, newWorld func(_ store.TopicLimits, nodes, places int) *world, parts bool) {
	nodes := rapid.IntRange(1, 3).Draw(t, "nodes")
	w := newWorld(limits, nodes, rapid.SampledFrom([]int{1, 2, 8, 30}).Draw(t, "places"))
	switch w.parts = parts; {
	case !parts:
	case nodes > 1 && limits.Rate.Limited() && limits.KeyRate.Limited():
		w.model.grace = time.Hour
	case nodes > 1 || limits.DeadLetter:
		w.model.grace = 3 * time.Second
	}
	keys := rapid.IntRange(1, 6).Draw(t, "keys")
	w.took = drawHandlers(t)
	total := 0
	// Tokens of a bucket are lost where others were taken since, a dead letter is judged while somebody has the token, and
	// what a Take in parts has of a token stays at the node for a while.
	goes := !parts && !limits.DeadLetter && !(limits.Rate.Limited() && limits.Rate.Kind == store.TokenBucket) &&
		!(limits.KeyRate.Limited() && limits.KeyRate.Kind == store.TokenBucket)
	t.Repeat(map[string]func(*rapid.T){
		"ready": func(t *rapid.T) {
			n := rapid.IntRange(1, 20).Draw(t, "n")
			node, skew := rapid.IntRange(0, nodes-1).Draw(t, "node"), rapid.IntRange(1, keys).Draw(t, "of keys")
			w.ready(node, tasks(fmt.Sprint("t", total, "x"), n, func(i int) ModelTask {
				return ModelTask{RateKey: fmt.Sprint("r", i%skew), CapKey: fmt.Sprint("c", i%(skew+1))}
			})...)
			total++
		},
		"gone": func(t *rapid.T) { // as soon as they are to be held
			if !goes {
				return
			}
			for range rapid.IntRange(1, 5).Draw(t, "n") {
				w.gone[fmt.Sprintf("t%dx%04d", rapid.IntRange(0, total).Draw(t, "of"), rapid.IntRange(0, 19).Draw(t, "task"))] = true
			}
		},
		"": func(t *rapid.T) {
			if err := w.run(time.Duration(rapid.SampledFrom([]int{5, 100, 400}).Draw(t, "ms")) * time.Millisecond); err != nil {
				t.Fatalf("%+v on %d nodes: %v", limits, nodes, err)
			}
		},
	})
}

// TestLimitsGoOnOnceAClockIsPutRight plays mixes whose store's clock is a day ahead for a while, and then right again. What
// was written down meanwhile (places in line, turns, shares, tokens, calls) is of a future that does not come: nobody may
// wait for it.
func TestLimitsGoOnOnceAClockIsPutRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, nodes := drawLimits(t), rapid.IntRange(1, 3).Draw(t, "nodes")
		w := newWorld(limits, nodes, rapid.SampledFrom([]int{1, 8}).Draw(t, "places"))
		w.parts = rapid.IntRange(0, 3).Draw(t, "take in parts") == 0
		w.model.limits, w.first = store.TopicLimits{}, func(error) {} // the model has no idea of clocks: it counts what starts
		length := time.Duration(rapid.SampledFrom([]int{0, 10, 100}).Draw(t, "ms of a handler")) * time.Millisecond
		w.took = func(string) time.Duration { return length }
		keys := rapid.IntRange(1, 4).Draw(t, "keys")
		ready := func(when string) {
			for n := range nodes {
				w.ready(n, tasks(fmt.Sprint(when, n), rapid.IntRange(0, 4).Draw(t, "tasks "+when), func(i int) ModelTask {
					return ModelTask{RateKey: fmt.Sprint("r", i%keys), CapKey: fmt.Sprint("c", i%keys)}
				})...)
			}
		}
		run := func(name string) {
			_ = w.run(time.Duration(rapid.SampledFrom([]int{5, 50, 700}).Draw(t, name)) * time.Millisecond)
		}
		ready("before")
		run("ms before")
		w.setClock(24 * time.Hour)
		ready("ahead")
		run("ms ahead")
		w.setClock(-24 * time.Hour)
		ready("after")
		// A topic or a key has a token each 5 s at least, and some are lost.
		for range 10 * (len(w.tasks) + 1) {
			if _ = w.run(time.Second); len(w.model.waiting) == 0 {
				return
			}
		}
		t.Fatalf("%+v on %d nodes: %d of %d tasks wait, long after the clock was put right", limits, nodes, len(w.model.waiting), len(w.tasks))
	})
}

// TestWhatIsOwedGoesBackOnceAClockIsPutRight: a permit has just ended, and nothing more is asked for by its node.
func TestWhatIsOwedGoesBackOnceAClockIsPutRight(t *testing.T) {
	w := newWorld(store.TopicLimits{Concurrency: 1}, 2, 1)
	w.first = func(error) {} // the model has no idea of clocks
	w.took = func(string) time.Duration { return 10 * time.Millisecond }
	w.setClock(24 * time.Hour)
	w.ready(0, ModelTask{ID: "a0000"})
	for w.model.started == 0 || len(w.model.running) > 0 {
		_ = w.run(time.Microsecond)
	}
	w.setClock(-24 * time.Hour)
	w.ready(1, ModelTask{ID: "b0000"})
	_ = w.run(5 * time.Second)
	if len(w.model.waiting) > 0 {
		t.Error("a task waits for a permit that ended before the clock was put right")
	}
}
