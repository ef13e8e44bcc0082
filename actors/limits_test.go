package actors

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
)

func (g *gatedStore) Reserve(ctx context.Context, asked []store.Reservation) ([]store.Tokens, error) {
	g.limitCalls.Add(1)
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Store.Reserve(ctx, asked)
}

func (g *gatedStore) Acquire(ctx context.Context, asked []store.Acquire) ([]store.Acquired, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Store.Acquire(ctx, asked)
}

func (g *gatedStore) Move(ctx context.Context, permits []store.Permit) error {
	if err := g.pass(ctx); err != nil {
		return err
	}
	return g.Store.Move(ctx, permits)
}

func (g *gatedStore) Free(ctx context.Context, permits []store.Permit) ([][]string, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Store.Free(ctx, permits)
}

// crew are workers on several nodes, and the books of what they got.
type crew struct {
	*testing.T
	workers []*crewman
	lasts   func() time.Duration // of a handler; nil: no time at all
	dead    map[*testNode]bool

	got   []time.Time          // deliveries
	held  map[string]time.Time // until when, at most
	most  int                  // held at a time
	acked map[string]bool
}

type crewman struct {
	*stream
	at      *testNode
	running []run
}

type run struct {
	Delivery
	ends time.Time
}

// hire subscribes workers, each at another node in turn.
func (f *testFleet) hire(topic string, n, credit int, names ...string) *crew {
	f.Helper()
	c := &crew{T: f.T, held: map[string]time.Time{}, acked: map[string]bool{}, dead: map[*testNode]bool{}}
	for i := range n {
		at := f.nodes[names[i%len(names)]]
		c.workers = append(c.workers, &crewman{stream: subscribeTo(f.T, at.sys, topic, credit), at: at})
	}
	time.Sleep(200 * time.Millisecond) // until every node has claimed its shards
	synctest.Wait()
	return c
}

// run has the workers work for a while.
func (c *crew) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, w := range c.workers {
			if !c.dead[w.at] {
				c.work(w)
			}
		}
	}
}

func (c *crew) work(w *crewman) {
	now := time.Now()
	for _, d := range w.take() {
		r := run{Delivery: d, ends: now}
		if c.lasts != nil {
			r.ends = now.Add(c.lasts())
		}
		w.running = append(w.running, r)
		c.got = append(c.got, now)
		c.held[d.Task.ID] = d.Deadline.Time()
	}
	c.count(now)
	w.running = slices.DeleteFunc(w.running, func(r run) bool {
		if r.ends.After(now) {
			return false
		}
		w.settle(SettleAck, r.Delivery)
		delete(c.held, r.Task.ID) // asked for; it may take a moment
		return true
	})
	for _, s := range w.takeSettled() {
		if s.Err == nil {
			c.acked[s.ID] = true
		}
		_ = w.sub.Grant(1)
	}
}

// count counts the holds that are valid.
func (c *crew) count(now time.Time) {
	valid := 0
	for _, until := range c.held {
		if until.After(now) {
			valid++
		}
	}
	c.most = max(c.most, valid)
}

// within returns the most deliveries in any window of a length.
func (c *crew) within(window time.Duration) (most int) {
	slices.SortFunc(c.got, time.Time.Compare)
	first := 0
	for i, at := range c.got {
		for at.Sub(c.got[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// limited creates a topic.
func (f *testFleet) limited(name string, c TopicChange) {
	f.Helper()
	if _, err := f.nodes["a"].sys.CreateTopic(f.Context(), name, c); err != nil {
		f.Fatal(err)
	}
}

func (f *testFleet) backlog(topic string, n int, edit func(i int, t *NewTask)) {
	f.Helper()
	for from := 0; from < n; from += 1000 {
		tasks := make([]NewTask, min(1000, n-from))
		for i := range tasks {
			tasks[i] = after(topic, fmt.Sprintf("t-%06d", from+i), 0)
			if edit != nil {
				edit(from+i, &tasks[i])
			}
		}
		results, err := f.nodes["a"].sys.Enqueue(f.Context(), tasks)
		if err != nil || results[0].Err != nil {
			f.Fatal(err, results[0].Err)
		}
	}
}

// Asked for in hibiken/asynq#609 and #900, riverqueue/river#132: a rate of a queue over
// all its servers.
func TestRateHoldsForTheFleet(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		const perSecond, burst = 100, 10
		f.limited("mail", TopicChange{Rate: &store.Rate{Count: perSecond, Period: time.Second, Burst: burst}})
		c := f.hire("mail", 8, 50, "a", "b", "c")
		f.backlog("mail", 12_000, nil)
		c.run(40 * time.Second)
		f.kill(f.nodes["b"])
		c.dead[f.nodes["b"]] = true
		c.run(25 * time.Second)
		if err := f.nodes["c"].sys.DrainPeer(true); err != nil {
			t.Fatal(err)
		}
		c.run(25 * time.Second)

		if most, top := c.within(time.Minute), 60*perSecond*102/100; most > top {
			t.Errorf("%d deliveries in a minute, want %d at most", most, top)
		}
		if got, least := len(c.got), 90*perSecond*90/100; got < least {
			t.Errorf("%d deliveries in 90 seconds, want %d at least", got, least)
		}
		calls := int64(0)
		for _, n := range f.nodes {
			calls += n.store.limitCalls.Load()
		}
		if per := float64(calls) / float64(len(c.got)); per > 0.1 {
			t.Errorf("%.3f reservations a task, want 0.1 at most", per)
		}
		t.Logf("%d deliveries, %d at most in a minute, %d reservations", len(c.got), c.within(time.Minute), calls)
	})
}

// Asked for in hibiken/asynq#542, #328, #797, #530, taskforcesh/bullmq#2972, #3670 and
// riverqueue/river#1145: a cap of a queue over all its servers, that costs little.
func TestCapHoldsForTheFleet(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		const most = 7
		visibility := 4 * time.Second
		f.limited("mail", TopicChange{Concurrency: new(most), Visibility: &visibility})
		c := f.hire("mail", 8, 50, "a", "b", "c")
		turn := 0
		c.lasts = func() time.Duration {
			turn++
			return time.Duration(20+turn*37%200) * time.Millisecond
		}
		f.backlog("mail", 3000, nil)
		c.run(15 * time.Second)
		f.kill(f.nodes["b"])
		c.dead[f.nodes["b"]] = true
		c.run(15 * time.Second)
		if err := f.nodes["c"].sys.DrainPeer(true); err != nil {
			t.Fatal(err)
		}
		c.run(15 * time.Second)
		if c.most > most {
			t.Errorf("%d tasks held at a time, want %d at most", c.most, most)
		}
		// 120 ms each on average: what seven at a time can do, but for the time that the
		// holds of the dead node last.
		if got, least := len(c.acked), 45*1000/120*most/2; got < least {
			t.Errorf("%d tasks done, want %d at least", got, least)
		}
		t.Logf("%d done, %d at a time", len(c.acked), c.most)
	})
}

func TestKeysHaveLimitsOfTheirOwn(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		f.limited("mail", TopicChange{KeyConcurrency: new(2), KeyRate: &store.Rate{Kind: store.SlidingWindow, Count: 20, Period: time.Second}})
		c := f.hire("mail", 6, 50, "a", "b", "c")
		keyed := func(i int) string { return fmt.Sprint("k", i%3) }
		f.backlog("mail", 600, func(i int, t *NewTask) {
			if key := keyed(i); key != "k2" {
				t.Task.Traits = &store.Traits{ConcurrencyKey: key}
				if key == "k1" {
					t.Task.Traits = &store.Traits{RateKey: key}
				}
			}
		})
		c.lasts = func() time.Duration { return 100 * time.Millisecond }
		c.run(5 * time.Second)
		done := map[string]int{}
		for id := range c.acked {
			var i int
			fmt.Sscanf(id, "t-%d", &i)
			done[keyed(i)]++
		}
		if done["k2"] != 200 {
			t.Errorf("%d tasks without keys done, want all 200", done["k2"])
		}
		if n := done["k0"]; n < 70 || n > 102 {
			t.Errorf("%d tasks done of a key of two at a time for 100ms, want nearly 100", n)
		}
		if n := done["k1"]; n < 80 || n > 120 {
			t.Errorf("%d tasks done of a key of twenty a second, want about 100", n)
		}
		t.Logf("%v", done)
	})
}

func TestLimitsChangeWhileRunning(t *testing.T) {
	fleetBubble(t, []string{"a"}, func(t *testing.T, f *testFleet) {
		f.limited("mail", TopicChange{Rate: &store.Rate{Count: 1, Period: time.Hour}})
		c := f.hire("mail", 1, 50, "a")
		f.backlog("mail", 100, nil)
		c.run(time.Second)
		if len(c.got) != 1 {
			t.Fatalf("%d deliveries at one an hour, want 1", len(c.got))
		}
		if _, err := f.nodes["a"].sys.ConfigureTopic(t.Context(), "mail", TopicChange{Rate: &store.Rate{Count: 20, Period: time.Second}}); err != nil {
			t.Fatal(err)
		}
		c.run(time.Second)
		if n := len(c.got); n < 15 || n > 25 {
			t.Fatalf("%d deliveries after a second at twenty a second, want about 20", n)
		}
		if _, err := f.nodes["a"].sys.ConfigureTopic(t.Context(), "mail", TopicChange{Rate: &store.Rate{}}); err != nil {
			t.Fatal(err)
		}
		c.run(100 * time.Millisecond)
		if len(c.got) != 100 {
			t.Fatalf("%d deliveries without a limit, want all", len(c.got))
		}
	})
}

func TestTasksOverARateMayBeDeadLettered(t *testing.T) {
	fleetBubble(t, []string{"a"}, func(t *testing.T, f *testFleet) {
		f.limited("mail", TopicChange{Rate: &store.Rate{Count: 1, Period: time.Hour, Burst: 3}, OverLimitDead: new(true)})
		c := f.hire("mail", 1, 50, "a")
		f.backlog("mail", 10, nil)
		c.run(time.Second)
		if len(c.got) != 3 {
			t.Errorf("%d deliveries, want the burst of 3", len(c.got))
		}
		dead, _, err := f.nodes["a"].sys.List(t.Context(), "mail", store.StateDead, 100, "")
		if err != nil || len(dead) != 7 {
			t.Fatalf("%d dead letters, %v, want 7", len(dead), err)
		}
		for _, d := range dead {
			if d.Reason != store.ReasonRateLimited || d.Attempt != 0 {
				t.Errorf("%s: reason %d, attempt %d, want rate limited and none", d.ID, d.Reason, d.Attempt)
			}
		}
	})
}

func TestExtensionsKeepTheirPermit(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		visibility := 2 * time.Second
		f.limited("mail", TopicChange{Concurrency: new(1), Visibility: &visibility})
		w := subscribeTo(t, f.nodes["b"].sys, "mail", 10)
		time.Sleep(200 * time.Millisecond)
		f.backlog("mail", 2, nil)
		time.Sleep(100 * time.Millisecond)
		first := w.takeOne()
		for range 10 {
			time.Sleep(1500 * time.Millisecond)
			w.settle(SettleExtend, first)
			if s := w.takeSettled(); len(s) != 1 || s[0].Err != nil {
				t.Fatalf("extension of a hold that is alive: %+v", s)
			}
		}
		if other := w.take(); len(other) != 0 {
			t.Fatalf("%s is held beside the one", other[0].Task.ID)
		}
		time.Sleep(1900 * time.Millisecond)
		if other := w.take(); len(other) != 0 {
			t.Fatalf("%s is held before the first hold ran out", other[0].Task.ID)
		}
		time.Sleep(2 * time.Second)
		w.settle(SettleExtend, first)
		if s := w.takeSettled(); len(s) != 1 || s[0].Err == nil || s[0].Err.Reason != "HOLD_LOST" {
			t.Errorf("extension of a hold that ran out: %+v", s)
		}
		if next := w.take(); len(next) != 1 {
			t.Errorf("%d tasks held once the permit is free, want one", len(next))
		}
	})
}

func TestOwnVisibilityTimeoutHoldsUnderACap(t *testing.T) {
	fleetBubble(t, []string{"a"}, func(t *testing.T, f *testFleet) {
		visibility := 2 * time.Second
		f.limited("mail", TopicChange{Concurrency: new(1), Visibility: &visibility})
		w := subscribeTo(t, f.nodes["a"].sys, "mail", 10)
		f.backlog("mail", 2, func(_ int, t *NewTask) { t.Task.Visibility = time.Minute })
		time.Sleep(10 * time.Millisecond)
		if d := w.takeOne(); d.HoldFor < 59*time.Second {
			t.Errorf("held for %v, want a minute", d.HoldFor)
		}
		time.Sleep(55 * time.Second)
		if other := w.take(); len(other) != 0 {
			t.Errorf("%s is held beside the one", other[0].Task.ID)
		}
		time.Sleep(10 * time.Second)
		w.takeOne()
	})
}

// What lets a task out of one line must not be lost while it waits in another.
func TestRateAndCapTogetherGoOn(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		f.limited("mail", TopicChange{Concurrency: new(3), Rate: &store.Rate{Count: 100, Period: time.Second, Burst: 5}})
		c := f.hire("mail", 3, 16, "a", "b", "c")
		c.lasts = func() time.Duration { return 5 * time.Millisecond }
		f.backlog("mail", 900, nil)
		c.run(5 * time.Second)
		c.lasts = func() time.Duration { return 100 * time.Millisecond } // the cap is what is tight now
		c.run(5 * time.Second)
		c.lasts = func() time.Duration { return 5 * time.Millisecond }
		c.run(5 * time.Second)
		if got := len(c.acked); got < 800 {
			t.Errorf("%d tasks done, want nearly 900", got)
		}
		if c.most > 3 {
			t.Errorf("%d tasks at a time, want 3 at most", c.most)
		}
		t.Logf("%d done, %d at a time", len(c.acked), c.most)
	})
}

// Two caps and a rate at a time are not used to the full. But nothing stands still.
func TestTwoCapsTogetherGoOn(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		f.limited("mail", TopicChange{Concurrency: new(4), KeyConcurrency: new(2), KeyRate: &store.Rate{Count: 30, Period: time.Second}})
		c := f.hire("mail", 3, 16, "a", "b", "c")
		turn := 0
		c.lasts = func() time.Duration {
			turn++
			return time.Duration(20+turn*37%100) * time.Millisecond
		}
		f.backlog("mail", 600, func(i int, t *NewTask) {
			key := fmt.Sprint("k", i%3)
			t.Task.Traits = &store.Traits{RateKey: key, ConcurrencyKey: key}
		})
		began := time.Now()
		for until := time.Now().Add(time.Minute); len(c.acked) < 600 && time.Now().Before(until); {
			c.run(time.Second / 4)
		}
		if c.most > 4 {
			t.Errorf("%d tasks at a time, want 4 at most", c.most)
		}
		if got := len(c.acked); got < 600 {
			t.Errorf("%d tasks done of 600", got)
		}
		t.Logf("%d done, %d at a time, in %v", len(c.acked), c.most, time.Since(began))
	})
}

// TestRateGoesOnAfterTheClockWasSetBack: what waits for a moment of the store's clock does not
// wait for as long as that clock was set back, once it is right again.
func TestRateGoesOnAfterTheClockWasSetBack(t *testing.T) {
	fleetBubble(t, []string{"a"}, func(t *testing.T, f *testFleet) {
		f.limited("mail", TopicChange{Rate: &store.Rate{Count: 10, Period: time.Second}})
		c := f.hire("mail", 1, 50, "a")
		f.backlog("mail", 200, nil)
		c.run(2 * time.Second)
		f.store.SetClock(-time.Hour)
		c.run(4 * time.Second)
		f.store.SetClock(0)
		before := len(c.got)
		c.run(8 * time.Second)
		if n := len(c.got) - before; n < 50 {
			t.Errorf("%d deliveries in eight seconds at ten a second, want 50 at least", n)
		}
	})
}
