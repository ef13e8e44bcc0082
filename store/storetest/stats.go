package storetest

import (
	"slices"
	"time"

	"github.com/ddq-io/ddq/store"
)

func statsCases() []entry {
	return []entry{
		{"Stats/Counts", statsCounts},
		{"Stats/ManyShards", statsMany},
		{"Counts/AreStatsWithoutReady", counts},
		{"Stats/Oldest", statsOldest},
		{"Stats/ReadySplit", statsReady},
		{"Clock/StampsFollowTheClock", clockStamps},
		{"Info/SaysWhatAnAckIsWorth", info},
	}
}

func statsCounts(f *fixture) {
	oldest := f.now() - 5000
	f.everyState()
	f.add(task("oldest", oldest))
	got := f.stats()
	f.within("now", got.Now)
	want := store.Stats{
		Stamp: got.Stamp, Pending: 4, Ready: 2, Running: 1, Done: 1, Dead: 2,
		Owner: "node-1", Epoch: f.fence.Epoch, OldestMs: oldest,
	}
	equal(f, "stats", got, want)
}

func counts(f *fixture) {
	f.everyState()
	f.addKeyed(store.Added, "keyed", f.keyed("keyed", "k", 0, store.KeyReturn))
	unknown := store.Shard{Topic: "never", N: 9}
	want, err := f.s.Stats(f.ctx, []store.Shard{f.shard, unknown})
	f.ok("stats", err)
	got, err := f.s.Counts(f.ctx, []store.Shard{f.shard, unknown})
	f.ok("counts", err)
	equal(f, "number of counts", len(got), len(want))
	for i := range want {
		want[i].Ready = 0
		if got[i].OldestMs == 0 { // a store says it where it costs nothing
			want[i].OldestMs = 0
		}
		f.within("now", got[i].Now)
		want[i].Now = got[i].Now
		equal(f, "counts", got[i], want[i])
	}
	got, err = f.s.Counts(f.ctx, nil)
	f.ok("counts of nothing", err)
	equal(f, "number of counts", len(got), 0)
}

func statsMany(f *fixture) {
	f.ready("a")
	shards := []store.Shard{{Topic: "never", N: 9}, f.shard, {Topic: "mail", N: 1}, f.shard}
	stats, err := f.s.Stats(f.ctx, shards)
	f.ok("stats", err)
	equal(f, "number of stats", len(stats), 4)
	for i, want := range []int64{0, 1, 0, 1} {
		equal(f, "number of ready tasks", stats[i].Ready, want)
	}
	equal(f, "owner of an unknown shard", stats[0].Owner, "")
	equal(f, "epoch of an unknown shard", stats[0].Epoch, 0)
	equal(f, "seq of an unknown shard", stats[0].Seq, 0)
	f.within("now of an unknown shard", stats[0].Now)
	stats, err = f.s.Stats(f.ctx, nil)
	f.ok("stats of nothing", err)
	equal(f, "number of stats", len(stats), 0)
}

func statsOldest(f *fixture) {
	equal(f, "oldest of none", f.stats().OldestMs, 0)
	now := f.now()
	f.add(task("b", now.Add(long)), task("a", now-5))
	equal(f, "oldest", f.stats().OldestMs, now-5)
	f.hold("a")
	equal(f, "oldest that is not running", f.stats().OldestMs, now.Add(long))
}

func statsReady(f *fixture) {
	f.scheduled(numbered(40)...)
	due := f.now().Add(2 * short)
	f.add(task("soon", due))
	for {
		stats := f.stats()
		want := int64(0)
		if !stats.Now.Before(due.Time()) {
			want = 1
		}
		equal(f, "number of ready tasks", stats.Ready, want)
		equal(f, "number of pending tasks", stats.Pending, 41)
		if want == 1 {
			return
		}
		waitUntil(f, f.s, f.now()+1)
	}
}

// clockStamps compares the moments of every kind of reply with the clock.
func clockStamps(f *fixture) {
	token := f.held("a")
	last, err := f.s.Clock(f.ctx)
	f.ok("clock", err)
	for i, call := range f.stampedCalls(token) {
		stamp, err := call()
		f.ok("call", err)
		now, err := f.s.Clock(f.ctx)
		f.ok("clock", err)
		if stamp.Now.Before(last.Add(-slack)) || stamp.Now.After(now.Add(slack)) {
			f.Fatalf("call %d answered at %v, between the clock's %v and %v", i, stamp.Now, last, now)
		}
		equal(f, "part below a microsecond", stamp.Now.Nanosecond()%int(time.Microsecond), 0)
		last = now
	}
}

// stampedCalls returns one harmless call of each method that returns a Stamp.
func (f *fixture) stampedCalls(held store.Token) []func() (store.Stamp, error) {
	s, ctx, shard := f.s, f.ctx, f.shard
	return []func() (store.Stamp, error){
		func() (store.Stamp, error) {
			stamp, _, err := s.Add(ctx, shard, tasks(f.now().Add(long), "b"))
			return stamp, err
		},
		func() (store.Stamp, error) {
			stamp, _, err := s.Extend(ctx, shard, []store.Extend{{ID: "a", Token: held, Visibility: long}})
			return stamp, err
		},
		func() (store.Stamp, error) {
			stamp, _, err := s.Hold(ctx, shard, f.fence, holdsOf(long, "b"))
			return stamp, err
		},
		func() (store.Stamp, error) {
			stamp, _, err := s.HoldNew(ctx, shard, f.fence, tasks(1, "c"), holdsOf(long, "c"))
			return stamp, err
		},
		func() (store.Stamp, error) {
			stamp, _, err := s.Recover(ctx, shard, f.fence, []store.Nack{{ID: "a", Token: held}})
			return stamp, err
		},
		func() (store.Stamp, error) {
			stamp, _, err := s.Edit(ctx, shard, []store.Edit{{ID: "b", Due: f.now().Add(2 * long)}})
			return stamp, err
		},
		func() (store.Stamp, error) { stamp, _, err := s.Get(ctx, shard, []string{"a"}); return stamp, err },
		func() (store.Stamp, error) {
			stamp, _, err := s.Window(ctx, shard, store.WindowQuery{To: f.now(), Limit: 1})
			return stamp, err
		},
		func() (store.Stamp, error) {
			stamp, _, err := s.Nack(ctx, shard, []store.Nack{{ID: "a", Token: held, Reason: store.ReasonPermanent}})
			return stamp, err
		},
		func() (store.Stamp, error) { stamp, _, err := s.Requeue(ctx, shard, []string{"a"}); return stamp, err },
		func() (store.Stamp, error) {
			stamp, _, err := s.RemoveDead(ctx, shard, []string{"a"})
			return stamp, err
		},
		func() (store.Stamp, error) {
			stamp, _, err := s.Remove(ctx, shard, store.Removals("a"))
			return stamp, err
		},
		func() (store.Stamp, error) {
			stamp, _, err := s.Ack(ctx, shard, []store.Ack{{ID: "x", Token: held}}, 0)
			return stamp, err
		},
		func() (store.Stamp, error) { stamp, _, err := s.Claim(ctx, shard, f.session); return stamp, err },
		func() (store.Stamp, error) { return f.stats().Stamp, nil },
	}
}

func info(f *fixture) {
	got, err := f.s.Info(f.ctx)
	f.ok("info", err)
	if got.Name == "" {
		f.Fatal("the store has no name")
	}
	if !slices.Contains([]string{"fast", "replicated", "synced", "none"}, got.Durability) {
		f.Fatalf("durability is %q", got.Durability)
	}
}
