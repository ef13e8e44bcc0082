package pebblestore

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ddq-io/ddq/store"
)

var dueOps = flag.Int("due.ops", 4000, "how many operations TestDueCountsEqualAWalk makes")

var dueShard = store.Shard{Topic: "due"}

// TestDueCountsEqualAWalk makes random operations while time passes, with a crash now and then.
func TestDueCountsEqualAWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		x := newDueTester(t, openMem(t, fs))
		for x.ops < *dueOps {
			x.step()
			time.Sleep(time.Duration(x.random.Int64N(int64(20 * time.Second))))
			if x.random.IntN(20) == 0 {
				x.check()
			}
			if x.random.IntN(150) == 0 {
				if err := x.s.Close(); err != nil {
					t.Fatal(err)
				}
				fs = fs.CrashClone(vfs.CrashCloneCfg{})
				x.reopen(openMem(t, fs))
			}
		}
		x.check()
	})
}

// dueTester makes random operations on tasks of a few ids.
type dueTester struct {
	testing.TB
	s      *Store
	fence  store.Fence
	random *rand.Rand
	tokens map[string]store.Token
	ops    int
}

func newDueTester(t testing.TB, s *Store) *dueTester {
	x := &dueTester{TB: t, random: rand.New(rand.NewPCG(1, 2)), tokens: make(map[string]store.Token)}
	x.reopen(s)
	return x
}

func (x *dueTester) reopen(s *Store) {
	x.s, x.fence = s, claim(x, s, dueShard)
	x.check()
}

// step makes one operation with some tasks.
func (x *dueTester) step() {
	x.Helper()
	batch := x.batch()
	x.ops += len(batch)
	ctx := context.Background()
	var err error
	switch x.random.IntN(12) {
	case 0, 1, 2:
		_, _, err = x.s.Add(ctx, dueShard, x.tasks(batch))
	case 3:
		_, _, err = x.s.HoldNew(ctx, dueShard, x.fence, x.tasks(batch), x.holds(batch))
	case 4, 5:
		_, _, err = x.s.Hold(ctx, dueShard, x.fence, x.holds(x.due()))
	case 6:
		_, _, err = x.s.Nack(ctx, dueShard, x.nacks(batch))
	case 7:
		_, _, err = x.s.Recover(ctx, dueShard, x.fence, x.nacks(batch))
	case 8:
		_, _, err = x.s.Edit(ctx, dueShard, x.edits(batch))
	case 9:
		_, _, err = x.s.Ack(ctx, dueShard, x.acks(batch), 0)
	case 10:
		_, _, err = x.s.Remove(ctx, dueShard, store.Removals(batch...))
	case 11:
		if x.random.IntN(40) == 0 {
			err = x.s.DropShard(ctx, dueShard)
		} else {
			_, _, err = x.s.Requeue(ctx, dueShard, batch)
		}
	}
	if err != nil {
		x.Fatal(err)
	}
}

func (x *dueTester) batch() []string {
	ids := make([]string, 1+x.random.IntN(12))
	for i := range ids {
		ids[i] = fmt.Sprint(x.random.IntN(400))
	}
	return ids
}

// due are the tasks that can be held, or soon can.
func (x *dueTester) due() (ids []string) {
	_, entries, err := x.s.Window(context.Background(), dueShard, store.WindowQuery{To: x.now().Add(time.Second), Limit: 10})
	if err != nil {
		x.Fatal(err)
	}
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

func (x *dueTester) now() store.Millis { return store.Millis(time.Now().UnixMilli()) }

// moment is about now, or minutes, hours or days from it.
func (x *dueTester) moment() store.Millis {
	reach := []time.Duration{time.Second, time.Minute, 3 * time.Hour, 100 * 24 * time.Hour}[x.random.IntN(4)]
	return x.now().Add(time.Duration(x.random.Int64N(int64(reach))) - reach/50)
}

func (x *dueTester) tasks(ids []string) (tasks []*store.Task) {
	for _, id := range ids {
		task := &store.Task{ID: id, Due: x.moment(), MaxRetries: -1, Fingerprint: x.random.Uint64()}
		if x.random.IntN(5) == 0 {
			task.Expires = task.Due + 1000
		}
		tasks = append(tasks, task)
	}
	return tasks
}

func (x *dueTester) holds(ids []string) (holds []store.Hold) {
	for _, id := range ids {
		h := store.Hold{ID: id, Token: store.NewToken(), Visibility: 30 * time.Second, Ahead: 100 * time.Millisecond}
		x.tokens[id] = h.Token
		holds = append(holds, h)
	}
	return holds
}

func (x *dueTester) acks(ids []string) (acks []store.Ack) {
	for _, id := range ids {
		acks = append(acks, store.Ack{ID: id, Token: x.tokens[id]})
	}
	return acks
}

func (x *dueTester) nacks(ids []string) (nacks []store.Nack) {
	for _, id := range ids {
		n := store.Nack{ID: id, Token: x.tokens[id], Delay: x.moment().Sub(x.now())}
		if x.random.IntN(4) == 0 {
			n.Reason = store.ReasonPermanent
		}
		nacks = append(nacks, n)
	}
	return nacks
}

func (x *dueTester) edits(ids []string) (edits []store.Edit) {
	for _, id := range ids {
		edits = append(edits, store.Edit{ID: id, Due: x.moment()})
	}
	return edits
}

// bounds are random ones, which begin as minutes or hours do as often as not.
func (x *dueTester) bounds() (bounds []store.Millis) {
	width := []int64{1, 1000, minuteMillis, hourMinutes * minuteMillis}[x.random.IntN(4)]
	for range 1 + x.random.IntN(20) {
		at := int64(x.moment())
		bounds = append(bounds, store.Millis(at-at%width))
	}
	if x.random.IntN(5) == 0 {
		bounds = append(bounds, math.MinInt64)
	}
	if x.random.IntN(5) == 0 {
		bounds = append(bounds, math.MaxInt64)
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// check compares histograms with what a walk of all tasks counts.
func (x *dueTester) check() {
	x.Helper()
	x.s.checkHistogram(x, dueShard, x.bounds()) // which asks
	time.Sleep(time.Second)
	synctest.Wait()
	if sh := x.s.shards.get(dueShard, false); sh.number != 0 && (sh.due == nil || !sh.due.complete) {
		x.Fatal("the tasks are not counted")
	}
	for range 3 {
		x.s.checkHistogram(x, dueShard, x.bounds())
	}
}

// checkHistogram compares a histogram with a walk of the index.
func (s *Store) checkHistogram(t testing.TB, shard store.Shard, bounds []store.Millis) {
	t.Helper()
	_, got, err := s.Histogram(context.Background(), shard, bounds)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]int64, len(bounds)+1)
	number := s.shards.get(shard, false).number
	err = s.dir.Scan(appendPrefix(nil, number, tablePending), appendPrefix(nil, number, tablePending+1), func(key, _ []byte) (bool, error) {
		at, _, _ := decodeTimeKey(key)
		i, at1 := slices.BinarySearch(bounds, at)
		if at1 {
			i++
		}
		want[i]++
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("histogram of %v is\n%v, want\n%v", bounds, got, want)
	}
}

// TestTasksChangeWhileTheyAreCounted has more tasks than are counted without a pause.
func TestTasksChangeWhileTheyAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newDueTester(t, openMem(t, vfs.NewMem()))
		ids := make([]string, 2*checkEvery)
		for i := range ids {
			ids[i] = fmt.Sprint(i)
		}
		if _, _, err := x.s.Add(t.Context(), dueShard, x.tasks(ids)); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			x.forget()
			for range 30 {
				x.s.checkHistogram(t, dueShard, x.bounds())
				x.step()
			}
			x.check()
		}
	})
}

// forget gives the counts up, as happens when nobody asks for long.
func (x *dueTester) forget() {
	sh := x.s.shards.get(dueShard, false)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.due = nil
}

func TestDueCountsAreGivenUpWhenNobodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newDueTester(t, openMem(t, vfs.NewMem()))
		counted := func(id string, want bool) {
			t.Helper()
			if _, _, err := x.s.Add(t.Context(), dueShard, []*store.Task{{ID: id, Due: x.now()}}); err != nil {
				t.Fatal(err)
			}
			if got := x.s.shards.get(dueShard, false).due != nil; got != want {
				t.Errorf("task %s is counted: %v, want %v", id, got, want)
			}
		}
		x.check()
		time.Sleep(time.Hour)
		counted("a", true)
		time.Sleep(time.Second)
		counted("b", false)
		x.check()
		counted("c", true)
	})
}

func TestCountsOfManyHoursHaveNoMinutes(t *testing.T) {
	began, found := newDueCounts(0), newDueCounts(0)
	for hour := range int64(2 * mostDueMinutes) {
		found.add(dueChange{hour * hourMinutes, 2})
	}
	began.add(dueChange{(2*mostDueMinutes - 1) * hourMinutes, -2}) // with minutes, which what was found has not
	began.add(dueChange{0, -1})
	began.complement(found)
	withMinutes := 0
	for _, h := range began.hours {
		if h.minutes != nil {
			withMinutes++
		}
	}
	if len(began.hours) != 2*mostDueMinutes-1 || withMinutes != began.minutes || withMinutes != mostDueMinutes || began.hours[0].minutes[0] != 1 {
		t.Errorf("%d hours, %d with minutes, which are counted as %d; %+v in the first", len(began.hours), withMinutes, began.minutes, began.hours[0])
	}
}

// TestDueCountsAreMadeAgainAfterARepair damages the index of pending tasks.
func TestDueCountsAreMadeAgainAfterARepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newDueTester(t, openMem(t, vfs.NewMem()))
		due := x.now().Add(time.Hour)
		if _, _, err := x.s.Add(t.Context(), dueShard, []*store.Task{{ID: "a", Due: due}, {ID: "b", Due: due}}); err != nil {
			t.Fatal(err)
		}
		number := x.s.shards.get(dueShard, false).number
		if err := x.s.dir.Delete(appendTimeKey(nil, number, tablePending, due, "a")); err != nil {
			t.Fatal(err)
		}
		if got := sweepAll(t, x.s, dueShard, x.fence); got != 1 {
			t.Fatalf("the sweep repaired %d, want 1", got)
		}
		time.Sleep(time.Minute)
		x.check()
		x.s.checkHistogram(t, dueShard, []store.Millis{due - 1, due + 1})
	})
}

// BenchmarkDueChange is what a change of the index costs while somebody asks, with batches of
// 512 of random due times.
func BenchmarkDueChange(b *testing.B) {
	for _, span := range []time.Duration{time.Hour, 24 * time.Hour, 365 * 24 * time.Hour} {
		b.Run(span.String(), func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			moments := make([]store.Millis, 1<<14)
			for i := range moments {
				moments[i] = store.Millis(random.Int64N(span.Milliseconds()))
			}
			sh := newShard(dueShard, 1, nil)
			sh.due = newDueCounts(0)
			sh.due.complete = true
			t := batch{sh: sh}
			b.ReportAllocs()
			started := cpuTime(b)
			for i := range b.N {
				if t.countDue(moments[i%len(moments)], 1); len(t.next.due) == 512 {
					t.next.apply(sh)
					t.next.reset()
				}
			}
			b.ReportMetric(float64((cpuTime(b)-started).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}
