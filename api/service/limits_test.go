package service_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// Asked for in hibiken/asynq#609 and #900, riverqueue/river#132: a rate of a queue over
// all its servers.
func TestRateHoldsForTheFleet(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		const perSecond, burst = 50, 10
		f.Limited("mail", service.TopicChange{Rate: &store.Rate{Count: perSecond, Period: time.Second, Burst: burst}})
		c := f.Hire("mail", 8, 50, "a", "b", "c")
		f.Backlog("mail", 6_000, nil)
		c.Run(40 * time.Second)
		f.Kill(f.Nodes["b"])
		c.Dead[f.Nodes["b"]] = true
		c.Run(25 * time.Second)
		if err := f.Nodes["c"].Sys.Node().Peer().Drain(true); err != nil {
			t.Fatal(err)
		}
		c.Run(25 * time.Second)

		if most, top := c.Within(time.Minute), 60*perSecond*102/100; most > top {
			t.Errorf("%d deliveries in a minute, want %d at most", most, top)
		}
		if got, least := len(c.Got), 90*perSecond*90/100; got < least {
			t.Errorf("%d deliveries in 90 seconds, want %d at least", got, least)
		}
		calls := int64(0)
		for _, n := range f.Nodes {
			calls += n.Store.LimitCalls.Load()
		}
		// A node asks when the next token comes: the faster the rate, the more come by one call.
		if per := float64(calls) / float64(len(c.Got)); per > 3 {
			t.Errorf("%.3f reservations a task, want one for each node at most", per)
		}
		t.Logf("%d deliveries, %d at most in a minute, %d reservations", len(c.Got), c.Within(time.Minute), calls)
	})
}

// TestBusyWorkersGetAllOfASlidingWindow has workers with little room, who are slow: no token
// ends while a task with it waits for one of them, or for another rate. What room workers of
// another node have is found out with tokens, some of which are lost.
func TestBusyWorkersGetAllOfASlidingWindow(t *testing.T) {
	rate := store.Rate{Kind: store.SlidingWindow, Count: 20, Period: 1700 * time.Millisecond}
	long := store.Rate{Kind: store.SlidingWindow, Count: 40, Period: 10 * time.Second}
	alone, pair := []string{"a"}, []string{"a", "b"}
	bucket := store.Rate{Count: 20, Period: 1700 * time.Millisecond, Burst: 1}
	for name, tt := range map[string]struct {
		limits   service.TopicChange
		keys     int
		nodes    []string
		workers  int     // one after the other at the nodes; each takes three at a time
		deliver  float64 // a second, at most
		fraction float64 // of those that come in any case
	}{
		"one worker":              {service.TopicChange{Rate: &rate}, 0, alone, 1, 20 / 1.7, 0.9},
		"half remote":             {service.TopicChange{Rate: &rate}, 0, pair, 1, 20 / 1.7, 0.6},
		"at both":                 {service.TopicChange{Rate: &rate}, 0, pair, 2, 20 / 1.7, 0.5},
		"keys":                    {service.TopicChange{KeyRate: &long}, 2, alone, 1, 8, 0.9},
		"many keys under a topic": {service.TopicChange{Rate: &rate, KeyRate: &long}, 10, alone, 1, 20 / 1.7, 0.9},
		"few keys under a topic":  {service.TopicChange{Rate: &rate, KeyRate: &long}, 2, alone, 1, 8, 0.9},
		"keys as fast as a topic": {service.TopicChange{Rate: &rate, KeyRate: &long}, 3, alone, 1, 20 / 1.7, 0.9},
		"keys under a bucket":     {service.TopicChange{Rate: &bucket, KeyRate: &long}, 2, alone, 1, 8, 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			servicetest.FleetBubble(t, tt.nodes, func(t *testing.T, f *servicetest.Fleet) {
				f.Limited("mail", tt.limits)
				c := f.Hire("mail", tt.workers, 3, tt.nodes...)
				f.Backlog("mail", 1000, func(i int, t *service.NewTask) {
					if tt.keys > 0 {
						t.Task.Traits = &store.Traits{RateKey: fmt.Sprint("k", i%tt.keys)}
					}
				})
				c.Lasts = func() time.Duration { return 100 * time.Millisecond }
				const seconds = 50
				c.Run(seconds * time.Second)

				if got, want := float64(len(c.Got)), tt.deliver*seconds; got < want*tt.fraction {
					t.Errorf("%.0f deliveries in %ds, want %.0f%% of %.0f", got, seconds, tt.fraction*100, want)
				}
				// The crew looks every 5ms.
				if most := c.Within(rate.Period - 5*time.Millisecond); tt.limits.Rate == &rate && most > rate.Count {
					t.Errorf("%d deliveries in one window, want %d at most", most, rate.Count)
				}
				calls := int64(0)
				for _, n := range f.Nodes {
					calls += n.Store.LimitCalls.Load()
				}
				t.Logf("%d deliveries, %d at most in a window, %d reservations", len(c.Got), c.Within(rate.Period-5*time.Millisecond), calls)
			})
		})
	}
}

// Asked for in hibiken/asynq#542, #328, #797, #530, taskforcesh/bullmq#2972, #3670 and
// riverqueue/river#1145: a cap of a queue over all its servers, that costs little.
func TestCapHoldsForTheFleet(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		const most = 7
		visibility := 4 * time.Second
		f.Limited("mail", service.TopicChange{Concurrency: new(most), Visibility: &visibility})
		c := f.Hire("mail", 8, 50, "a", "b", "c")
		turn := 0
		c.Lasts = func() time.Duration {
			turn++
			return time.Duration(20+turn*37%200) * time.Millisecond
		}
		f.Backlog("mail", 3000, nil)
		c.Run(15 * time.Second)
		f.Kill(f.Nodes["b"])
		c.Dead[f.Nodes["b"]] = true
		c.Run(15 * time.Second)
		if err := f.Nodes["c"].Sys.Node().Peer().Drain(true); err != nil {
			t.Fatal(err)
		}
		c.Run(15 * time.Second)
		if c.Most > most {
			t.Errorf("%d tasks held at a time, want %d at most", c.Most, most)
		}
		// 120 ms each on average: what seven at a time can do, but for the time that the
		// holds of the dead node last.
		if got, least := len(c.Acked), 45*1000/120*most/2; got < least {
			t.Errorf("%d tasks done, want %d at least", got, least)
		}
		t.Logf("%d done, %d at a time", len(c.Acked), c.Most)
	})
}

func TestKeysHaveLimitsOfTheirOwn(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Limited("mail", service.TopicChange{KeyConcurrency: new(2), KeyRate: &store.Rate{Kind: store.SlidingWindow, Count: 20, Period: time.Second}})
		c := f.Hire("mail", 6, 50, "a", "b", "c")
		keyed := func(i int) string { return fmt.Sprint("k", i%3) }
		f.Backlog("mail", 600, func(i int, t *service.NewTask) {
			if key := keyed(i); key != "k2" {
				t.Task.Traits = &store.Traits{ConcurrencyKey: key}
				if key == "k1" {
					t.Task.Traits = &store.Traits{RateKey: key}
				}
			}
		})
		c.Lasts = func() time.Duration { return 100 * time.Millisecond }
		c.Run(5 * time.Second)
		done := map[string]int{}
		for id := range c.Acked {
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
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Limited("mail", service.TopicChange{Rate: &store.Rate{Count: 1, Period: time.Hour}})
		c := f.Hire("mail", 1, 50, "a")
		f.Backlog("mail", 100, nil)
		c.Run(time.Second)
		if len(c.Got) != 1 {
			t.Fatalf("%d deliveries at one an hour, want 1", len(c.Got))
		}
		if _, err := f.Nodes["a"].Sys.Topics.Configure(t.Context(), "mail", service.TopicChange{Rate: &store.Rate{Count: 20, Period: time.Second}}); err != nil {
			t.Fatal(err)
		}
		c.Run(time.Second)
		if n := len(c.Got); n < 15 || n > 25 {
			t.Fatalf("%d deliveries after a second at twenty a second, want about 20", n)
		}
		if _, err := f.Nodes["a"].Sys.Topics.Configure(t.Context(), "mail", service.TopicChange{Rate: &store.Rate{}}); err != nil {
			t.Fatal(err)
		}
		c.Run(100 * time.Millisecond)
		if len(c.Got) != 100 {
			t.Fatalf("%d deliveries without a limit, want all", len(c.Got))
		}
	})
}

func TestTasksOverARateMayBeDeadLettered(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Limited("mail", service.TopicChange{Rate: &store.Rate{Count: 1, Period: time.Hour, Burst: 3}, OverLimitDead: new(true)})
		c := f.Hire("mail", 1, 50, "a")
		f.Backlog("mail", 10, nil)
		c.Run(time.Second)
		if len(c.Got) != 3 {
			t.Errorf("%d deliveries, want the burst of 3", len(c.Got))
		}
		dead, _, err := f.Nodes["a"].Sys.Finder.List(t.Context(), "mail", store.StateDead, 100, "")
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
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		visibility := 2 * time.Second
		f.Limited("mail", service.TopicChange{Concurrency: new(1), Visibility: &visibility})
		w := servicetest.Subscribe(t, f.Nodes["b"].Sys, "mail", 10)
		time.Sleep(200 * time.Millisecond)
		f.Backlog("mail", 2, nil)
		time.Sleep(100 * time.Millisecond)
		first := w.TakeOne()
		for range 10 {
			time.Sleep(1500 * time.Millisecond)
			w.Settle(subscription.SettleExtend, first)
			if s := w.TakeSettled(); len(s) != 1 || s[0].Err != nil {
				t.Fatalf("extension of a hold that is alive: %+v", s)
			}
		}
		if other := w.Take(); len(other) != 0 {
			t.Fatalf("%s is held beside the one", other[0].Task.ID)
		}
		time.Sleep(1900 * time.Millisecond)
		if other := w.Take(); len(other) != 0 {
			t.Fatalf("%s is held before the first hold ran out", other[0].Task.ID)
		}
		time.Sleep(2 * time.Second)
		w.Settle(subscription.SettleExtend, first)
		if s := w.TakeSettled(); len(s) != 1 || s[0].Err == nil || s[0].Err.Reason != "HOLD_LOST" {
			t.Errorf("extension of a hold that ran out: %+v", s)
		}
		if next := w.Take(); len(next) != 1 {
			t.Errorf("%d tasks held once the permit is free, want one", len(next))
		}
	})
}

func TestOwnVisibilityTimeoutHoldsUnderACap(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		visibility := 2 * time.Second
		f.Limited("mail", service.TopicChange{Concurrency: new(1), Visibility: &visibility})
		w := servicetest.Subscribe(t, f.Nodes["a"].Sys, "mail", 10)
		f.Backlog("mail", 2, func(_ int, t *service.NewTask) { t.Task.Visibility = time.Minute })
		time.Sleep(10 * time.Millisecond)
		if d := w.TakeOne(); d.HoldFor < 59*time.Second {
			t.Errorf("held for %v, want a minute", d.HoldFor)
		}
		time.Sleep(55 * time.Second)
		if other := w.Take(); len(other) != 0 {
			t.Errorf("%s is held beside the one", other[0].Task.ID)
		}
		time.Sleep(10 * time.Second)
		w.TakeOne()
	})
}

// What lets a task out of one line must not be lost while it waits in another.
func TestRateAndCapTogetherGoOn(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Limited("mail", service.TopicChange{Concurrency: new(3), Rate: &store.Rate{Count: 100, Period: time.Second, Burst: 5}})
		c := f.Hire("mail", 3, 16, "a", "b", "c")
		c.Lasts = func() time.Duration { return 5 * time.Millisecond }
		f.Backlog("mail", 900, nil)
		c.Run(5 * time.Second)
		c.Lasts = func() time.Duration { return 100 * time.Millisecond } // the cap is what is tight now
		c.Run(5 * time.Second)
		c.Lasts = func() time.Duration { return 5 * time.Millisecond }
		c.Run(5 * time.Second)
		if got := len(c.Acked); got < 800 {
			t.Errorf("%d tasks done, want nearly 900", got)
		}
		if c.Most > 3 {
			t.Errorf("%d tasks at a time, want 3 at most", c.Most)
		}
		t.Logf("%d done, %d at a time", len(c.Acked), c.Most)
	})
}

// Two caps and a rate at a time are not used to the full. But nothing stands still.
func TestTwoCapsTogetherGoOn(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Limited("mail", service.TopicChange{Concurrency: new(4), KeyConcurrency: new(2), KeyRate: &store.Rate{Count: 30, Period: time.Second}})
		c := f.Hire("mail", 3, 16, "a", "b", "c")
		turn := 0
		c.Lasts = func() time.Duration {
			turn++
			return time.Duration(20+turn*37%100) * time.Millisecond
		}
		f.Backlog("mail", 600, func(i int, t *service.NewTask) {
			key := fmt.Sprint("k", i%3)
			t.Task.Traits = &store.Traits{RateKey: key, ConcurrencyKey: key}
		})
		began := time.Now()
		for until := time.Now().Add(time.Minute); len(c.Acked) < 600 && time.Now().Before(until); {
			c.Run(time.Second / 4)
		}
		if c.Most > 4 {
			t.Errorf("%d tasks at a time, want 4 at most", c.Most)
		}
		if got := len(c.Acked); got < 600 {
			t.Errorf("%d tasks done of 600", got)
		}
		t.Logf("%d done, %d at a time, in %v", len(c.Acked), c.Most, time.Since(began))
	})
}

// TestRateGoesOnAfterTheClockWasSetBack: what waits for a moment of the store's clock does not
// wait for as long as that clock was set back, once it is right again.
func TestRateGoesOnAfterTheClockWasSetBack(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		f.Limited("mail", service.TopicChange{Rate: &store.Rate{Count: 10, Period: time.Second}})
		c := f.Hire("mail", 1, 50, "a")
		f.Backlog("mail", 200, nil)
		c.Run(2 * time.Second)
		f.Store.SetClock(-time.Hour)
		c.Run(4 * time.Second)
		f.Store.SetClock(0)
		before := len(c.Got)
		c.Run(8 * time.Second)
		if n := len(c.Got) - before; n < 50 {
			t.Errorf("%d deliveries in eight seconds at ten a second, want 50 at least", n)
		}
	})
}

// slowStore takes a while for permits and for holds.
type slowStore struct {
	store.Store
	permits atomic.Int64 // in nanoseconds
	holds   time.Duration
}

func (s *slowStore) Take(ctx context.Context, q *store.Take) (*store.TakeReply, error) {
	got, err := s.Store.Take(ctx, q)
	time.Sleep(time.Duration(s.permits.Load()))
	return got, err
}

func (s *slowStore) Hold(ctx context.Context, shard store.Shard, fence store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	time.Sleep(s.holds)
	return s.Store.Hold(ctx, shard, fence, holds)
}

// slowBubble runs a test on a System over a slow store, in fake time, with a topic mail
// that has a rate, a cap and a backlog.
func slowBubble(t *testing.T, c service.TopicChange, backlog int, test func(t *testing.T, s *service.Service, slow *slowStore)) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowStore{Store: memstore.New(), holds: time.Millisecond}
		slow.permits.Store(int64(time.Millisecond))
		s := servicetest.Start(t, actors.Config{}, slow)
		defer func() {
			s.Node().Stop(t.Context())
			time.Sleep(5 * time.Second) // as in bubble
		}()
		if _, err := s.Topics.Create(t.Context(), "mail", c); err != nil {
			t.Fatal(err)
		}
		for range backlog {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", "", 0))
		}
		test(t, s, slow)
	})
}

// Workers leave while permits are being asked for: their tasks go to whoever stays.
func TestWorkersLeaveATopicWithARateAndACap(t *testing.T) {
	const tasks = 3000
	c := service.TopicChange{Shards: new(1), Rate: &store.Rate{Count: 10_000, Period: time.Second, Burst: 5000}, Concurrency: new(50_000)}
	slowBubble(t, c, tasks, func(t *testing.T, s *service.Service, slow *slowStore) {
		slow.permits.Store(int64(300 * time.Millisecond))
		for range 3 {
			w := servicetest.Subscribe(t, s, "mail", 1000)
			servicetest.Idle(200 * time.Millisecond)
			w.Sub.Unsubscribe(nil)
			servicetest.Idle(2 * time.Second)
		}
		slow.permits.Store(0)
		w, got := servicetest.Subscribe(t, s, "mail", 1000), 0
		for range 120 {
			servicetest.Idle(500 * time.Millisecond)
			for _, d := range w.Take() {
				got++
				w.Settle(subscription.SettleAck, d)
				_ = w.Sub.Grant(1)
			}
		}
		if got != tasks {
			t.Errorf("%d of %d tasks delivered in a minute", got, tasks)
		}
	})
}

// A long poll is a subscription that ends with its first tasks, and leaves others in flight
// to their shards.
func TestLongPollsOfATopicWithARateAndACap(t *testing.T) {
	const tasks = 3000
	c := service.TopicChange{Shards: new(4), Rate: &store.Rate{Count: 5000, Period: time.Second, Burst: 1000}, Concurrency: new(500)}
	slowBubble(t, c, tasks, func(t *testing.T, s *service.Service, _ *slowStore) {
		got := 0
		for empty := 0; got < tasks && empty < 10; empty++ {
			held, err := s.Delivery.Retrieve(t.Context(), subscription.Options{Topic: "mail", Worker: "w"}, 50, 2*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if len(held) == 0 {
				continue
			}
			acks := make([]subscription.Settlement, len(held))
			for i, d := range held {
				acks[i] = subscription.Settlement{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}
			}
			if _, err := s.Delivery.Settle(t.Context(), "mail", acks); err != nil {
				t.Fatal(err)
			}
			got, empty = got+len(held), 0
		}
		if got < tasks {
			t.Errorf("%d of %d tasks delivered", got, tasks)
		}
	})
}
