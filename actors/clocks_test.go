package actors_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// primaries are two machines of a cluster whose clocks differ: the second has the shards
// with an odd number, the first has all else.
type primaries struct {
	store.Store
	second   *memstore.Store
	ahead    atomic.Int64 // of the second
	windows  atomic.Int64 // calls since they were counted last
	holds    atomic.Int64
	recovers atomic.Int64
}

func newPrimaries(ahead time.Duration) *primaries {
	p := &primaries{Store: memstore.New(), second: memstore.New()}
	p.set(ahead)
	return p
}

func (p *primaries) set(ahead time.Duration) {
	p.ahead.Store(int64(ahead))
	p.second.SetClock(ahead)
}

// of returns who has a shard, after the way there.
func (p *primaries) of(s store.Shard) store.Store {
	time.Sleep(300 * time.Microsecond)
	if s.N%2 == 1 {
		return p.second
	}
	return p.Store
}

// now is the time on the machine that has a shard.
func (p *primaries) now(shard int) time.Time {
	if shard%2 == 1 {
		return time.Now().Add(time.Duration(p.ahead.Load()))
	}
	return time.Now()
}

func (p *primaries) Info(ctx context.Context) (store.Info, error) {
	info, err := p.Store.Info(ctx)
	info.ManyClocks = true
	return info, err
}

func (p *primaries) RenewSession(ctx context.Context, session store.Session) (store.Renewal, error) {
	if _, err := p.second.RenewSession(ctx, session); err != nil {
		return store.Renewal{}, err
	}
	return p.Store.RenewSession(ctx, session)
}

func (p *primaries) Claim(ctx context.Context, s store.Shard, session store.Session) (store.Stamp, store.Fence, error) {
	return p.of(s).Claim(ctx, s, session)
}

func (p *primaries) Release(ctx context.Context, s store.Shard, f store.Fence) error {
	return p.of(s).Release(ctx, s, f)
}

func (p *primaries) Add(ctx context.Context, s store.Shard, tasks []*store.Task) (store.Stamp, []store.AddResult, error) {
	return p.of(s).Add(ctx, s, tasks)
}

func (p *primaries) HoldNew(ctx context.Context, s store.Shard, f store.Fence, tasks []*store.Task, holds []store.Hold) (store.Stamp, []store.AddResult, error) {
	return p.of(s).HoldNew(ctx, s, f, tasks, holds)
}

func (p *primaries) Hold(ctx context.Context, s store.Shard, f store.Fence, holds []store.Hold) (store.Stamp, []store.HoldResult, error) {
	p.holds.Add(1)
	return p.of(s).Hold(ctx, s, f, holds)
}

func (p *primaries) Ack(ctx context.Context, s store.Shard, acks []store.Ack, retention time.Duration) (store.Stamp, []store.Status, error) {
	return p.of(s).Ack(ctx, s, acks, retention)
}

func (p *primaries) Recover(ctx context.Context, s store.Shard, f store.Fence, nacks []store.Nack) (store.Stamp, []store.NackResult, error) {
	p.recovers.Add(1)
	return p.of(s).Recover(ctx, s, f, nacks)
}

func (p *primaries) Running(ctx context.Context, s store.Shard, cursor string, limit int) ([]store.Running, string, error) {
	return p.of(s).Running(ctx, s, cursor, limit)
}

func (p *primaries) Window(ctx context.Context, s store.Shard, w store.WindowQuery) (store.Stamp, []store.Entry, error) {
	p.windows.Add(1)
	return p.of(s).Window(ctx, s, w)
}

func (p *primaries) InOrder(ctx context.Context, s store.Shard, keys []string, limit int) (store.Stamp, [][]store.Ordered, error) {
	return p.of(s).InOrder(ctx, s, keys, limit)
}

func (p *primaries) Lanes(ctx context.Context, s store.Shard, after *store.Lane, limit int) ([]store.LaneHead, error) {
	return p.of(s).Lanes(ctx, s, after, limit)
}

func (p *primaries) Sweep(ctx context.Context, s store.Shard, f store.Fence, cursor string, limit int) (int, string, error) {
	return p.of(s).Sweep(ctx, s, f, cursor, limit)
}

func (p *primaries) Stats(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return p.each(shards, func(s store.Shard) ([]store.Stats, error) { return p.of(s).Stats(ctx, []store.Shard{s}) })
}

func (p *primaries) Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	return p.each(shards, func(s store.Shard) ([]store.Stats, error) { return p.of(s).Counts(ctx, []store.Shard{s}) })
}

func (p *primaries) each(shards []store.Shard, ask func(store.Shard) ([]store.Stats, error)) (all []store.Stats, err error) {
	for _, s := range shards {
		stats, err := ask(s)
		if err != nil {
			return nil, err
		}
		all = append(all, stats...)
	}
	return all, nil
}

// primariesBubble runs a test of a node on two machines whose clocks differ.
func primariesBubble(t *testing.T, ahead time.Duration, test func(t *testing.T, s *service.Service, p *primaries)) {
	primariesUnder(t, ahead, store.TopicLimits{}, test)
}

// primariesUnder is primariesBubble with limits.
func primariesUnder(t *testing.T, ahead time.Duration, limits store.TopicLimits, test func(t *testing.T, s *service.Service, p *primaries)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPrimaries(ahead)
		s := servicetest.Start(t, actors.Config{Topic: store.Topic{Shards: 16, Limits: limits}}, p)
		defer func() {
			short, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			s.Node().Stop(short)
			time.Sleep(5 * time.Second)
		}()
		test(t, s, p)
	})
}

// delays enqueues n tasks, due one after the other.
func delays(t *testing.T, s *service.Service, prefix string, n int, every time.Duration) {
	t.Helper()
	for i := range n {
		if out := servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(prefix, i), every*time.Duration(i+1))); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
}

// punctual fails when n tasks did not come, or not in time by the clocks of their shards.
func (p *primaries) punctual(t *testing.T, w *servicetest.Stream, n int, late time.Duration) {
	t.Helper()
	synctest.Wait()
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if len(w.Got) != n {
		t.Errorf("%d deliveries, want %d", len(w.Got), n)
	}
	for i, d := range w.Got {
		shard, _, _ := actors.DecodeToken(d.Token)
		off := p.now(shard).Sub(d.Task.Due.Time()) - time.Since(w.At[i])
		if off < 0 || off > late {
			t.Errorf("task %s of shard %d came %v after its due time, want 0 to %v", d.Task.ID, shard, off, late)
		}
	}
	w.Got = nil
}

var skews = []time.Duration{0, 400 * time.Millisecond, 600 * time.Millisecond, -600 * time.Millisecond, 5 * time.Second}

func TestTasksAreDueByTheClockOfTheirPrimary(t *testing.T) {
	for _, ahead := range skews {
		t.Run(ahead.String(), func(t *testing.T) {
			primariesBubble(t, ahead, func(t *testing.T, s *service.Service, p *primaries) {
				w := servicetest.Subscribe(t, s, "mail", 1000)
				began := time.Now()
				p.holds.Store(0)
				delays(t, s, "a", 200, 97*time.Millisecond)
				time.Sleep(25 * time.Second)
				p.punctual(t, w, 200, 10*time.Millisecond)
				for i, at := range w.At {
					if waited, want := at.Sub(began), 97*time.Millisecond*time.Duration(i+1); waited < want {
						t.Errorf("delay %d of %v was over after %v", i, want, waited)
					}
				}
				if n := p.holds.Load(); n > 220 {
					t.Errorf("%d calls to hold 200 tasks", n)
				}
			})
		})
	}
}

func TestClocksThatDifferCostNothing(t *testing.T) {
	for _, ahead := range skews {
		t.Run(ahead.String(), func(t *testing.T) {
			primariesBubble(t, ahead, func(t *testing.T, s *service.Service, p *primaries) {
				delays(t, s, "a", 1, time.Hour)
				servicetest.Idle(time.Second)
				p.windows.Store(0)
				before, most := goruntime.NumGoroutine(), 0
				for i := range 500 {
					servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint("b", i), time.Hour))
					most = max(most, goruntime.NumGoroutine())
				}
				servicetest.Idle(10 * time.Second)
				if n := p.windows.Load(); n > 16*8 {
					t.Errorf("%d windows were read in ten seconds", n)
				}
				if most = max(most, goruntime.NumGoroutine()); most > before+100 {
					t.Errorf("%d goroutines, and %d before", most, before)
				}
			})
		})
	}
}

// A store that does not say that it has many clocks must not be read without end.
func TestReactionsToJumpsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPrimaries(5 * time.Second)
		s := servicetest.Start(t, actors.Config{Topic: store.Topic{Shards: 16}}, oneClock{p})
		defer func() {
			s.Node().Stop(t.Context())
			time.Sleep(5 * time.Second)
		}()
		delays(t, s, "a", 100, time.Hour)
		p.windows.Store(0)
		before := goruntime.NumGoroutine()
		servicetest.Idle(10 * time.Second)
		if n := p.windows.Load(); n > 16*15 {
			t.Errorf("%d windows of 16 shards were read in ten seconds", n)
		}
		if n := goruntime.NumGoroutine(); n > before+50 {
			t.Errorf("%d goroutines, and %d before", n, before)
		}
	})
}

type oneClock struct{ *primaries }

func (o oneClock) Info(ctx context.Context) (store.Info, error) { return o.Store.Info(ctx) }

func TestClockOfOnePrimaryThatSteps(t *testing.T) {
	for _, step := range []time.Duration{5 * time.Second, -5 * time.Second, 300 * time.Millisecond} {
		t.Run(step.String(), func(t *testing.T) {
			primariesBubble(t, 0, func(t *testing.T, s *service.Service, p *primaries) {
				w := servicetest.Subscribe(t, s, "mail", 1000)
				delays(t, s, "a", 100, 400*time.Millisecond)
				time.Sleep(5 * time.Second)
				w.Take()
				p.set(step)
				p.windows.Store(0)
				time.Sleep(10 * time.Second) // for every shard to hear of it
				w.Take()
				w.Mu.Lock()
				w.At = nil
				w.Mu.Unlock()
				if n := p.windows.Load(); n > 16*10 {
					t.Errorf("%d windows were read in ten seconds", n)
				}
				p.holds.Store(0)
				delays(t, s, "b", 100, 97*time.Millisecond)
				time.Sleep(50 * time.Second)
				w.Mu.Lock()
				late := w.Got
				w.Mu.Unlock()
				if len(late) < 100 {
					t.Errorf("%d deliveries after the step", len(late))
				}
				p.punctual(t, w, len(late), 10*time.Millisecond)
				if n := p.holds.Load(); n > int64(len(late))+20 {
					t.Errorf("%d calls to hold %d tasks", n, len(late))
				}
			})
		})
	}
}

// A key of which tasks wait is looked at again a second later: by a clock that goes back
// meanwhile that moment is not reached, and what is set anew must not be due at once.
func TestOrderingKeysOfAPrimaryWhoseClockStepsBack(t *testing.T) {
	primariesBubble(t, 0, func(t *testing.T, s *service.Service, p *primaries) {
		const keys = 16 // in shards of both
		enqueue := func(delay time.Duration) {
			for i := range keys {
				task := servicetest.After("mail", "", delay)
				task.Task.Traits = &store.Traits{OrderingKey: fmt.Sprint("k", i)}
				if out := servicetest.EnqueueOne(t, s, task); out.Err != nil {
					t.Fatal(out.Err)
				}
			}
		}
		w := servicetest.Subscribe(t, s, "mail", 0) // the first of each key waits for credit, and the second for the first
		enqueue(0)
		enqueue(0)
		time.Sleep(2500 * time.Millisecond)
		p.set(-time.Minute)
		enqueue(time.Hour) // so that the node hears of it
		time.Sleep(10 * time.Second)
		if err := w.Sub.Grant(100); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		came := make(map[string]bool)
		for _, d := range w.Take() {
			came[d.Task.Traits.Ordering()] = true
		}
		if len(came) != keys {
			t.Errorf("tasks of %d keys came, want %d", len(came), keys)
		}
	})
}

func TestHoldsRunOutByTheClockOfTheirPrimary(t *testing.T) {
	for _, ahead := range skews {
		t.Run(ahead.String(), func(t *testing.T) {
			primariesBubble(t, ahead, func(t *testing.T, s *service.Service, p *primaries) {
				w := servicetest.Subscribe(t, s, "mail", 1000)
				delays(t, s, "a", 50, time.Millisecond)
				time.Sleep(2 * time.Second)
				if first := w.Take(); len(first) != 50 {
					t.Fatalf("%d deliveries", len(first))
				}
				p.recovers.Store(0)
				time.Sleep(27 * time.Second) // the visibility timeout is 30 s
				if early := w.Take(); len(early) != 0 {
					t.Errorf("%d holds ran out early", len(early))
				}
				time.Sleep(4 * time.Second) // and a retry waits for a second and some more
				if again := w.Take(); len(again) != 50 {
					t.Errorf("%d tasks came again, want 50", len(again))
				}
				if n := p.recovers.Load(); n > 60 {
					t.Errorf("%d calls to recover 50 holds", n)
				}
			})
		})
	}
}

// Rates and caps go by the clock of the topic's primary, which is the first.
func TestLimitsHoldForShardsOfAnotherClock(t *testing.T) {
	limits := map[string]store.TopicLimits{
		"bucket": {Rate: store.Rate{Kind: store.TokenBucket, Count: 50, Period: time.Second, Burst: 10}},
		"window": {Rate: store.Rate{Kind: store.SlidingWindow, Count: 50, Period: time.Second}},
		"cap":    {Concurrency: 50},
	}
	for name, limits := range limits {
		for _, ahead := range append(skews, 90*time.Millisecond) {
			t.Run(fmt.Sprint(name, " ", ahead), func(t *testing.T) {
				primariesUnder(t, ahead, limits, func(t *testing.T, s *service.Service, _ *primaries) {
					w := servicetest.Subscribe(t, s, "mail", 1000)
					delays(t, s, "a", 50, 97*time.Millisecond)
					time.Sleep(15 * time.Second)
					if got := w.Take(); len(got) != 50 {
						t.Errorf("%d deliveries, want 50", len(got))
					}
				})
			})
		}
	}
}

func TestClocksThatDifferAreAnAlarm(t *testing.T) {
	for ahead, warned := range map[time.Duration]bool{0: false, 400 * time.Millisecond: true} {
		t.Run(ahead.String(), func(t *testing.T) {
			primariesBubble(t, ahead, func(t *testing.T, s *service.Service, p *primaries) {
				delays(t, s, "a", 50, time.Hour)
				status, err := s.Describe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				found := false
				for _, text := range status.Warnings {
					found = found || text == "clocks of the store's primaries differ by 400ms: synchronize them"
				}
				if found != warned {
					t.Errorf("warnings are %q", status.Warnings)
				}
			})
		})
	}
}

// slowAnswers is a store of many clocks whose answers come late: what they say of its clock is old.
type slowAnswers struct {
	*memstore.Store
	late time.Duration
}

func (s *slowAnswers) Info(ctx context.Context) (store.Info, error) {
	info, err := s.Store.Info(ctx)
	info.ManyClocks = true
	return info, err
}

func (s *slowAnswers) Claim(ctx context.Context, shard store.Shard, session store.Session) (store.Stamp, store.Fence, error) {
	defer time.Sleep(s.late)
	return s.Store.Claim(ctx, shard, session)
}

func (s *slowAnswers) Window(ctx context.Context, shard store.Shard, q store.WindowQuery) (store.Stamp, []store.Entry, error) {
	defer time.Sleep(s.late)
	return s.Store.Window(ctx, shard, q)
}

func (s *slowAnswers) Stats(ctx context.Context, shards []store.Shard) ([]store.Stats, error) {
	defer time.Sleep(s.late)
	return s.Store.Stats(ctx, shards)
}

func (s *slowAnswers) Wakes(ctx context.Context, shard store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	defer time.Sleep(s.late)
	return s.Store.Wakes(ctx, shard, q)
}

func (s *slowAnswers) Commit(ctx context.Context, shard store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	defer time.Sleep(s.late)
	return s.Store.Commit(ctx, shard, f, commits)
}

// TestAResumeCountsFromWhenItIsAskedFor also where the clock of the store is not known well, as of a
// primary that was silent when its shard was new.
func TestAResumeCountsFromWhenItIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &slowAnswers{memstore.New(), 1500 * time.Millisecond}
		s := servicetest.Start(t, actors.Config{}, db)
		defer func() {
			s.Node().Stop(t.Context())
			time.Sleep(5 * time.Second)
		}()
		start := time.Now()
		sched := putSchedule(t, s.Node(), "minutely", everySpec(time.Minute))
		if _, err := s.Schedules.Pause(t.Context(), "mail", "minutely", "ada", ""); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Until(start.Add(time.Minute + 500*time.Millisecond)))
		if _, err := s.Schedules.Resume(t.Context(), "mail", "minutely", "ada", ""); err != nil {
			t.Fatal(err)
		}
		if got := sched.read(); got.Made != 0 || got.Skipped[schedule.WasPaused] != 1 {
			t.Errorf("half a second after an occurrence it was resumed, and has made %d and skipped %v", got.Made, got.Skipped)
		}
	})
}
