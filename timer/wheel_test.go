package timer_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/ddq-io/ddq/timer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// owner is an actor in small: it takes each slot that it is notified of, in
// its own goroutine, and notes what it got when.
type owner struct {
	*timer.Queue
	mail chan func()
	done chan struct{}
	got  []delivery // of the owner's goroutine; read it inside do
}

type delivery struct {
	timer.Entry
	at time.Time
}

func newOwner(t *testing.T, w *timer.Wheel, now func() time.Time) *owner {
	o := &owner{mail: make(chan func(), 1024), done: make(chan struct{})}
	o.Queue = w.NewQueue(func(ms int64) {
		o.mail <- func() {
			for _, e := range o.Take(ms) {
				o.got = append(o.got, delivery{e, now()})
			}
		}
	})
	go func() {
		defer close(o.done)
		for f := range o.mail {
			f()
		}
	}()
	t.Cleanup(func() {
		w.Close() // no notify after it, so the mailbox may close
		close(o.mail)
		<-o.done
	})
	return o
}

// do runs f in the owner's goroutine and waits for it.
func (o *owner) do(f func()) {
	ran := make(chan struct{})
	o.mail <- func() { defer close(ran); f() }
	<-ran
}

// taken returns what the owner got since the last call.
func (o *owner) taken() (got []delivery) {
	o.do(func() { got, o.got = o.got, nil })
	return got
}

// shifted is a clock at an offset from the machine's.
type shifted struct{ offset atomic.Int64 }

func (s *shifted) Now() time.Time              { return time.Now().Add(time.Duration(s.offset.Load())) }
func (s *shifted) set(d time.Duration)         { s.offset.Store(int64(d)) }
func (s *shifted) after(d time.Duration) int64 { return s.Now().Add(d).UnixMilli() }

func TestSlotIsDeliveredInItsMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := timer.New(timer.Config{})
		o := newOwner(t, w, time.Now)
		due := time.Now().Add(5 * time.Second).UnixMilli()
		o.do(func() {
			for _, id := range []string{"b", "a", "c"} {
				if !o.Insert(id, due) {
					t.Errorf("insert %q: known, want new", id)
				}
			}
		})

		time.Sleep(5*time.Second - time.Nanosecond)
		synctest.Wait()
		if got := o.taken(); len(got) != 0 {
			t.Fatalf("got %v before due", got)
		}
		time.Sleep(tick)
		synctest.Wait()
		got := o.taken()
		if ids := fmt.Sprint(idsOf(got)); ids != "[b a c]" {
			t.Fatalf("got %s, want [b a c]: insertion order", ids)
		}
		if late := got[0].at.Sub(time.UnixMilli(due)); late != 0 {
			t.Errorf("lateness %v, want 0 in a bubble", late)
		}
	})
}

func TestPastDueIsNotifiedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := timer.New(timer.Config{})
		o := newOwner(t, w, time.Now)
		for _, due := range []int64{time.Now().UnixMilli(), time.Now().Add(-24 * time.Hour).UnixMilli(), 0, -1, -1 << 62} {
			o.do(func() { o.Insert("late", due) })
			synctest.Wait() // no time passes
			if got := o.taken(); len(got) != 1 || got[0].Due != due {
				t.Errorf("due %d: got %v, want it at once", due, got)
			}
		}
	})
}

func TestMovedTaskIsDeliveredOnceAtItsNewTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := timer.New(timer.Config{})
		o := newOwner(t, w, time.Now)
		start := time.Now()
		o.do(func() {
			o.Insert("sooner", start.Add(20*time.Second).UnixMilli())
			o.Insert("later", start.Add(10*time.Second).UnixMilli())
			o.Insert("gone", start.Add(10*time.Second).UnixMilli())
			if o.Insert("sooner", start.Add(time.Second).UnixMilli()) || o.Insert("later", start.Add(30*time.Second).UnixMilli()) {
				t.Error("moved ids are reported as new")
			}
			if !o.Remove("gone") || o.Remove("gone") {
				t.Error("remove: want true, then false")
			}
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		got := o.taken()
		if ids := fmt.Sprint(idsOf(got)); ids != "[sooner later]" {
			t.Fatalf("got %s, want [sooner later]", ids)
		}
		if at := got[1].at.Sub(start); at != 30*time.Second {
			t.Errorf("later came after %v, want 30s", at)
		}
	})
}

var hours = flag.Int("timer.hours", 6, "of how many hours TestDayOfTasksIsNeverEarly loads tasks")

// Hours of tasks, loaded a horizon at a time as a shard does it.
func TestDayOfTasksIsNeverEarly(t *testing.T) {
	const horizon, load = 30 * time.Second, 10 * time.Second
	day, tasks := time.Duration(*hours)*time.Hour, *hours*4000
	synctest.Test(t, func(t *testing.T) {
		clock := new(shifted)
		clock.set(-1234567 * time.Microsecond) // so that a ms of the store is none of the machine
		w := timer.New(timer.Config{Now: clock.Now})
		o := newOwner(t, w, clock.Now)
		start := clock.Now()
		ids := make([]string, tasks)
		steps := make([][]int, int(day/load)+1)
		due := make([]int64, tasks)
		for i := range tasks {
			ids[i] = uuid.NewString()
			at := rand.Int64N(int64(day))
			due[i] = start.Add(time.Duration(at)).UnixMilli() + 1
			steps[max(0, (at-int64(horizon))/int64(load))] = append(steps[max(0, (at-int64(horizon))/int64(load))], i)
		}
		for _, step := range steps {
			o.do(func() {
				for _, i := range step {
					o.Insert(ids[i], due[i])
				}
			})
			time.Sleep(load)
		}
		time.Sleep(horizon)
		synctest.Wait()

		got := o.taken()
		if len(got) != tasks {
			t.Fatalf("got %d tasks, want %d", len(got), tasks)
		}
		var worst time.Duration
		for _, d := range got {
			late := d.at.Sub(time.UnixMilli(d.Due))
			if late < 0 {
				t.Fatalf("task due %d came %v early", d.Due, -late)
			}
			worst = max(worst, late)
		}
		if worst > tick {
			t.Errorf("worst lateness %v, want at most %v in a bubble", worst, tick)
		}
	})
}

// What is due beyond half a turn waits outside the library's wheel.
func TestFarTasksComeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := timer.New(timer.Config{Slots: 4096})
		o := newOwner(t, w, time.Now)
		start := time.Now()
		want := []time.Duration{time.Second, 2047 * tick, 2049 * tick, 2561 * tick, 4096 * tick, 9 * time.Second, time.Hour}
		o.do(func() {
			for _, d := range want {
				o.Insert(d.String(), start.Add(d).UnixMilli())
			}
			o.Insert("removed", start.Add(time.Minute).UnixMilli())
			o.Remove("removed")
		})
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		got := o.taken()
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", idsOf(got), want)
		}
		for i, d := range want {
			if at := got[i].at.Sub(start); got[i].ID != d.String() || at != d {
				t.Errorf("got %s after %v, want %s then", got[i].ID, at, d)
			}
		}
	})
}

func TestClockForwardAndResetDeliversAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(shifted)
		w := timer.New(timer.Config{Now: clock.Now})
		o := newOwner(t, w, clock.Now)
		o.do(func() {
			o.Insert("near", clock.after(10*time.Second))
			o.Insert("far", clock.after(59*time.Minute))
			o.Insert("beyond", clock.after(time.Hour+10*time.Second))
		})
		time.Sleep(time.Second)

		clock.set(time.Hour)
		w.Reset()
		synctest.Wait()
		if got := fmt.Sprint(sortedIDs(o.taken())); got != "[far near]" {
			t.Fatalf("got %s at once, want [far near]", got)
		}
		time.Sleep(9*time.Second - time.Nanosecond)
		synctest.Wait()
		if got := o.taken(); len(got) != 0 {
			t.Fatalf("got %v early", got)
		}
		time.Sleep(tick)
		synctest.Wait()
		if got := fmt.Sprint(idsOf(o.taken())); got != "[beyond]" {
			t.Fatalf("got %s, want [beyond] at its time on the new clock", got)
		}
	})
}

func TestClockBackwardIsNeverEarly(t *testing.T) {
	for _, reset := range []bool{true, false} {
		t.Run(fmt.Sprintf("reset=%v", reset), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := new(shifted)
				w := timer.New(timer.Config{Now: clock.Now})
				o := newOwner(t, w, clock.Now)
				due := clock.after(10 * time.Second)
				o.do(func() { o.Insert("a", due) })
				time.Sleep(time.Second)

				clock.set(-time.Hour)
				if reset {
					w.Reset()
				}
				time.Sleep(time.Hour + 9*time.Second - time.Nanosecond)
				synctest.Wait()
				if got := o.taken(); len(got) != 0 {
					t.Fatalf("got %v early", got)
				}
				time.Sleep(tick)
				synctest.Wait()
				if got := o.taken(); len(got) != 1 || got[0].at.UnixMilli() != due {
					t.Fatalf("got %v, want a at %d", got, due)
				}
			})
		})
	}
}

// Without Reset a clock that moved forward costs the lateness of the move, for
// what was near, and no more than a heartbeat for what was far.
func TestClockForwardWithoutResetIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(shifted)
		w := timer.New(timer.Config{Now: clock.Now})
		o := newOwner(t, w, clock.Now)
		o.do(func() { o.Insert("far", clock.after(30*time.Minute)) })
		clock.set(time.Hour)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := o.taken(); len(got) != 1 {
			t.Fatalf("got %v, want the far task within a heartbeat", got)
		}
	})
}

func TestQueuesShareASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := timer.New(timer.Config{})
		due := time.Now().Add(time.Second).UnixMilli()
		owners := make([]*owner, 16)
		for i := range owners {
			owners[i] = newOwner(t, w, time.Now)
			owners[i].do(func() { owners[i].Insert("x", due) })
		}
		owners[3].do(func() { owners[3].Remove("x") })
		owners[4].do(func() { owners[4].Close() })
		owners[5].do(func() { owners[5].Remove("x"); owners[5].Insert("x", due) })
		time.Sleep(time.Second)
		synctest.Wait()
		for i, o := range owners {
			want := 1
			if i == 3 || i == 4 {
				want = 0
			}
			if got := o.taken(); len(got) != want {
				t.Errorf("queue %d got %v, want %d", i, got, want)
			}
		}
	})
}

func TestNothingIsNotifiedAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := timer.New(timer.Config{})
		var notified atomic.Int64
		q := w.NewQueue(func(int64) { notified.Add(1) })
		for i := range 100 {
			q.Insert(fmt.Sprint(i), time.Now().Add(time.Duration(i)*tick).UnixMilli())
		}
		time.Sleep(50 * tick)
		w.Close()
		w.Close()
		before := notified.Load()
		if before == 0 {
			t.Fatal("nothing was notified before close")
		}
		q.Insert("late", 0)
		w.Reset()
		time.Sleep(time.Minute)
		synctest.Wait()
		if after := notified.Load(); after != before {
			t.Errorf("%d notified after close", after-before)
		}
		q.Close()
	})
}

const tick = time.Millisecond

func idsOf(got []delivery) []string {
	ids := make([]string, len(got))
	for i, d := range got {
		ids[i] = d.ID
	}
	return ids
}

func sortedIDs(got []delivery) []string {
	ids := idsOf(got)
	slices.Sort(ids)
	return ids
}

// Slots come and go close together while the wheel walks past them, and every
// one is met at its moment, the earlier ones put in after the later ones too.
func TestNeighboringSlotsAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := new(shifted)
		clock.set(123456 * time.Nanosecond)
		w := timer.New(timer.Config{Now: clock.Now})
		o := newOwner(t, w, clock.Now)
		want := map[string]time.Time{}
		for i := range 5000 {
			id, due := fmt.Sprint(i), clock.after(time.Duration(rand.Int64N(int64(40*tick))))
			want[id] = time.UnixMilli(due)
			if now := clock.Now(); now.After(want[id]) {
				want[id] = now
			}
			o.do(func() {
				o.Insert(id, due)
				if i%3 == 0 {
					o.Remove(id)
					delete(want, id)
				}
			})
			time.Sleep(time.Duration(rand.Int64N(int64(tick))))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		got := o.taken()
		if len(got) != len(want) {
			t.Fatalf("got %d tasks, want %d", len(got), len(want))
		}
		for _, d := range got {
			if !d.at.Equal(want[d.ID]) {
				t.Fatalf("%s due %d came at %v, want %v", d.ID, d.Due, d.at, want[d.ID])
			}
		}
	})
}

// The clock of a queue may be ahead of the wheel's, or behind, and that may change.
func TestQueueOfAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Second, -5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			clock := new(shifted)
			w := timer.New(timer.Config{})
			o := newOwner(t, w, clock.Now)
			o.do(func() {
				o.Insert("before", clock.after(20*time.Second))
				clock.set(ahead)
				o.Shift(ahead.Milliseconds())
				o.Insert("a", clock.after(20*time.Second))
				o.Insert("gone", clock.after(20*time.Second))
				o.Insert("moved", clock.after(time.Second))
				o.Insert("moved", clock.after(21*time.Second))
				o.Remove("gone")
			})
			time.Sleep(time.Minute)
			got := o.taken()
			if names := fmt.Sprint(sortedIDs(got)); names != "[a before moved]" {
				t.Errorf("got %s", names)
			}
			for _, d := range got {
				if d.at.UnixMilli() != d.Due {
					t.Errorf("%s came at %d, due at %d", d.ID, d.at.UnixMilli(), d.Due)
				}
			}
		})
	}
}
