package timer_test

import (
	"math/rand/v2"

	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/RussellLuo/timingwheel"
	"github.com/google/uuid"

	"github.com/ddq-io/ddq/timer"
)

// spread is how far benchmarks spread due times: the default horizon of a shard.
const spread = 30 * time.Second

// backlog is how many tasks a benchmark of a full queue holds. Its index and
// entries are far larger than any cache, so that half the cost is memory.
const backlog = 1 << 20

// tasks are ids with due times over the spread, some way ahead.
type tasks struct {
	ids []string
	due []int64
}

func newTasks(n int) tasks {
	t := tasks{make([]string, n), make([]int64, n)}
	base := time.Now().Add(time.Minute).UnixMilli()
	for i := range n {
		t.ids[i] = uuid.NewString()
		t.due[i] = base + rand.Int64N(spread.Milliseconds())
	}
	return t
}

// slots returns the due times in use.
func (t tasks) slots() []int64 {
	slots := slices.Clone(t.due)
	slices.Sort(slots)
	return slices.Compact(slots)
}

func (t tasks) insertInto(q *timer.Queue) {
	for i, id := range t.ids {
		q.Insert(id, t.due[i])
	}
}

// eachRound runs f until it has been given b.N tasks, setting up before each
// round with the clock stopped.
func eachRound(b *testing.B, setup func() (f func(i int))) {
	b.ReportAllocs()
	var used time.Duration
	b.ResetTimer() // making the tasks took longer than the work
	for done := 0; done < b.N; done += backlog {
		b.StopTimer()
		f := setup()
		b.StartTimer()
		before := cpu(b)
		for i := range min(backlog, b.N-done) {
			f(i)
		}
		used += cpu(b) - before
	}
	b.ReportMetric(float64(used)/float64(b.N), "cpu-ns/op")
}

// insertOrders are tasks in the order of their due times, and at random.
func insertOrders() map[string]tasks {
	random := newTasks(backlog)
	ordered := tasks{random.ids, slices.Sorted(slices.Values(random.due))}
	return map[string]tasks{"ordered": ordered, "random": random}
}

// BenchmarkInsert fills a queue in the order of due times, as it is loaded from
// a store, and at random.
func BenchmarkInsert(b *testing.B) {
	for name, all := range insertOrders() {
		b.Run(name, func(b *testing.B) {
			w := timer.New(timer.Config{})
			defer w.Close()
			var q *timer.Queue
			eachRound(b, func() func(int) {
				if q != nil {
					q.Close()
				}
				q = w.NewQueue(func(int64) {})
				runtime.GC()
				return func(i int) { q.Insert(all.ids[i], all.due[i]) }
			})
		})
	}
}

// BenchmarkInsertAll does the same in the batches that shards get.
func BenchmarkInsertAll(b *testing.B) {
	for name, all := range insertOrders() {
		b.Run(name, func(b *testing.B) {
			w := timer.New(timer.Config{})
			defer w.Close()
			entries := make([]timer.Entry, backlog)
			for i := range entries {
				entries[i] = timer.Entry{ID: all.ids[i], Due: all.due[i]}
			}
			var q *timer.Queue
			eachRound(b, func() func(int) {
				if q != nil {
					q.Close()
				}
				q = w.NewQueue(func(int64) {})
				runtime.GC()
				return func(i int) {
					if i%128 == 0 {
						q.InsertAll(entries[i : i+128])
					}
				}
			})
		})
	}
}

func BenchmarkInsertLibrary(b *testing.B) {
	all := newTasks(backlog)
	var w *timingwheel.TimingWheel
	eachRound(b, func() func(int) {
		if w != nil {
			w.Stop()
		}
		w = timingwheel.NewTimingWheel(time.Millisecond, 1<<17)
		w.Start()
		runtime.GC()
		return func(i int) {
			id := all.ids[i]
			w.AfterFunc(time.Until(time.UnixMilli(all.due[i])), func() { runtime.KeepAlive(id) })
		}
	})
	w.Stop()
}

func BenchmarkInsertRuntime(b *testing.B) {
	all := newTasks(backlog)
	timers := make([]*time.Timer, backlog)
	stop := func() {
		for _, t := range timers {
			if t != nil {
				t.Stop()
			}
		}
	}
	eachRound(b, func() func(int) {
		stop()
		runtime.GC()
		return func(i int) {
			id := all.ids[i]
			timers[i] = time.AfterFunc(time.Until(time.UnixMilli(all.due[i])), func() { runtime.KeepAlive(id) })
		}
	})
	stop()
}

func BenchmarkMove(b *testing.B) {
	all := newTasks(backlog)
	w := timer.New(timer.Config{})
	defer w.Close()
	q := w.NewQueue(func(int64) {})
	all.insertInto(q)
	for i := 0; b.Loop(); i++ {
		q.Insert(all.ids[i%backlog], all.due[(i*7+i/backlog+1)%backlog])
	}
}

func BenchmarkRemove(b *testing.B) {
	all := newTasks(backlog)
	w := timer.New(timer.Config{})
	defer w.Close()
	q := w.NewQueue(func(int64) {})
	eachRound(b, func() func(int) {
		all.insertInto(q)
		return func(i int) { q.Remove(all.ids[i]) }
	})
}

// BenchmarkTake hands over slots of a full queue: of some 35 tasks each, put in
// at random, and all tasks in one slot.
func BenchmarkTake(b *testing.B) {
	all := newTasks(backlog)
	herd := tasks{all.ids, make([]int64, backlog)}
	for i := range herd.due {
		herd.due[i] = all.due[0]
	}
	for name, set := range map[string]tasks{"spread": all, "herd": herd} {
		b.Run(name, func(b *testing.B) {
			w := timer.New(timer.Config{})
			defer w.Close()
			q := w.NewQueue(func(int64) {})
			slots := set.slots()
			b.ReportAllocs()
			taken, used := 0, time.Duration(0)
			b.ResetTimer()
			for taken < b.N {
				b.StopTimer()
				set.insertInto(q)
				runtime.GC()
				b.StartTimer()
				before := cpu(b)
				for _, ms := range slots {
					if taken >= b.N {
						break
					}
					taken += len(q.Take(ms))
				}
				used += cpu(b) - before
			}
			b.ReportMetric(float64(b.Elapsed())/float64(taken), "ns/task")
			b.ReportMetric(float64(used)/float64(taken), "cpu-ns/task")
			b.ReportMetric(0, "ns/op")
			q.Close()
		})
	}
}

// BenchmarkMemory reports the heap that a million tasks take, ids included.
func BenchmarkMemory(b *testing.B) {
	all := newTasks(backlog)
	fill := map[string]func() (keep any, stop func()){
		"queue": func() (any, func()) {
			w := timer.New(timer.Config{})
			q := w.NewQueue(func(int64) {})
			all.copied().insertInto(q)
			return q, w.Close
		},
		"library": func() (any, func()) {
			w := timingwheel.NewTimingWheel(time.Millisecond, 1<<17)
			w.Start()
			for i, id := range all.copied().ids {
				w.AfterFunc(time.Until(time.UnixMilli(all.due[i])), func() { runtime.KeepAlive(id) })
			}
			return w, w.Stop
		},
		"runtime": func() (any, func()) {
			timers := make([]*time.Timer, backlog)
			for i, id := range all.copied().ids {
				timers[i] = time.AfterFunc(time.Until(time.UnixMilli(all.due[i])), func() { runtime.KeepAlive(id) })
			}
			return timers, func() {
				for _, t := range timers {
					t.Stop()
				}
			}
		},
	}
	for name, fill := range fill {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				keep, stop := fill()
				b.ReportMetric(float64(heap()-before)/backlog, "B/task")
				runtime.KeepAlive(keep)
				stop()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// copied has ids of its own, so that they count as memory of who keeps them.
func (t tasks) copied() tasks {
	ids := make([]string, len(t.ids))
	for i, id := range t.ids {
		ids[i] = string([]byte(id))
	}
	return tasks{ids, t.due}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkLateness delivers 100,000 tasks spread over some seconds and reports
// how late they were taken, in ms: by this package on the machine's clock and
// on one 300 us off, and by one timer a task.
func BenchmarkLateness(b *testing.B) {
	for _, offset := range []time.Duration{0, 300 * time.Microsecond} {
		b.Run("queue/offset="+offset.String(), func(b *testing.B) {
			now := func() time.Time { return time.Now().Add(offset) }
			measure(b, now, func(ids []string, due []int64, deliver func(int64, time.Time)) func() {
				w := timer.New(timer.Config{Now: now})
				mail := make(chan int64, 1<<16)
				q := w.NewQueue(func(ms int64) { mail <- ms })
				tasks{ids, due}.insertInto(q)
				var actor sync.WaitGroup
				actor.Go(func() {
					for ms := range mail {
						for _, e := range q.Take(ms) {
							deliver(e.Due, now())
						}
					}
				})
				return func() { w.Close(); close(mail); actor.Wait() }
			})
		})
	}
	b.Run("library", func(b *testing.B) {
		measure(b, time.Now, func(ids []string, due []int64, deliver func(int64, time.Time)) func() {
			w := timingwheel.NewTimingWheel(time.Millisecond, 65536)
			w.Start()
			for _, ms := range due {
				w.AfterFunc(time.Until(time.UnixMilli(ms)), func() { deliver(ms, time.Now()) })
			}
			return w.Stop
		})
	})
	b.Run("runtime", func(b *testing.B) {
		measure(b, time.Now, func(ids []string, due []int64, deliver func(int64, time.Time)) func() {
			for _, ms := range due {
				time.AfterFunc(time.Until(time.UnixMilli(ms)), func() { deliver(ms, time.Now()) })
			}
			return func() {}
		})
	})
}

// measure runs start with 100,000 tasks, and waits until all are delivered.
func measure(b *testing.B, now func() time.Time, start func(ids []string, due []int64, deliver func(int64, time.Time)) (stop func())) {
	const n, over = 100_000, 4 * time.Second
	for b.Loop() {
		ids, due := make([]string, n), make([]int64, n)
		base := now().Add(time.Second)
		for i := range n {
			ids[i] = uuid.NewString()
			due[i] = base.Add(over * time.Duration(i) / n).UnixMilli()
		}
		var mu sync.Mutex
		late := make([]time.Duration, 0, n)
		all := make(chan struct{})
		before := cpu(b)
		stop := start(ids, due, func(due int64, at time.Time) {
			mu.Lock()
			defer mu.Unlock()
			if late = append(late, at.Sub(time.UnixMilli(due))); len(late) == n {
				close(all)
			}
		})
		<-all
		used := cpu(b) - before
		stop()
		slices.Sort(late)
		for name, at := range map[string]int{"p50-ms": n / 2, "p99-ms": n * 99 / 100, "p999-ms": n * 999 / 1000, "max-ms": n - 1} {
			b.ReportMetric(float64(late[at])/1e6, name)
		}
		early, _ := slices.BinarySearch(late, 0)
		b.ReportMetric(float64(early), "early")
		b.ReportMetric(float64(used)/n, "cpu-ns/task")
		b.ReportMetric(0, "ns/op")
	}
}

// cpu returns the processor time this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
