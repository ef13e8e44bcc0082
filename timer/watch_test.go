package timer

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/RussellLuo/timingwheel"
)

// replaceDriver puts dead in the place of the wheel's driver.
func replaceDriver(w *Wheel, dead *driver) {
	w.mu.Lock()
	old := w.driver
	w.driver = dead
	w.mu.Unlock()
	old.close()
}

// deadDriver has a wheel of the library that takes timers and never fires one.
func deadDriver() *driver {
	return &driver{
		lib:  timingwheel.NewTimingWheel(tick, leastSlots),
		wake: make(chan struct{}, 1),
		quit: make(chan struct{}),
	}
}

func TestDeadWheelIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Config{})
		defer w.Close()
		dead := deadDriver()
		dead.idle.Go(func() { w.run(dead) })
		replaceDriver(w, dead)

		taken := make(chan int64, 2)
		q := w.NewQueue(func(ms int64) { taken <- ms })
		soon, later := time.Now().Add(time.Second).UnixMilli(), time.Now().Add(10*time.Second).UnixMilli()
		q.Insert("soon", soon)
		q.Insert("later", later)

		start := time.Now()
		if ms := <-taken; ms != soon {
			t.Fatalf("got %d first, want %d", ms, soon)
		}
		if took := time.Since(start); took > (2+lateBeats)*heartbeat {
			t.Errorf("replaced after %v, want at most %v", took, (2+lateBeats)*heartbeat)
		}
		if ms := <-taken; ms != later || time.Now().UnixMilli() != later {
			t.Errorf("got %d at %d, want %d in time", ms, time.Now().UnixMilli(), later)
		}
		if n := w.Rebuilds(); n != 1 {
			t.Errorf("rebuilds %d, want 1", n)
		}
	})
}

func TestLivingWheelIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Config{})
		defer w.Close()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := w.Rebuilds(); n != 0 {
			t.Errorf("rebuilds %d of a living wheel, want 0", n)
		}
	})
}

// TestWheelsThatAreLeftAlone have a heartbeat that nothing else is ordered with: the race detector sees
// what it looks at. There are many, since it comes at about the time of what orders them, the look of
// watch; and nothing is waited for that takes a lock of theirs.
func TestWheelsThatAreLeftAlone(t *testing.T) {
	var all sync.WaitGroup
	for range 50 {
		time.Sleep(tick * 3 / 10) // the library's heartbeat is at a whole tick, the look is not
		w := New(Config{})
		all.Go(func() {
			time.Sleep(heartbeat + heartbeat/4)
			w.Close()
		})
	}
	all.Wait()
}

// A goroutine that hangs in a deadlocked wheel keeps neither inserts nor Close.
func TestHungWheelKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := New(Config{})
		hung := deadDriver()
		hung.idle.Go(func() { <-release })
		replaceDriver(w, hung)

		taken := make(chan int64, 1)
		q := w.NewQueue(func(ms int64) { taken <- ms })
		q.Insert("a", time.Now().UnixMilli())
		<-taken // by the wheel that replaced it

		start := time.Now()
		w.Close()
		if took := time.Since(start); took != closeLimit {
			t.Errorf("close took %v, want to give up after %v", took, closeLimit)
		}
		close(release)
	})
}

func TestSteadyClockHasNotStepped(t *testing.T) {
	from := time.Now()
	if to := from.Add(24 * time.Hour); stepped(from, to) {
		t.Error("both readings moved by a day: want no step")
	}
	// Without its steady reading a time moves by the wall clock alone, as one does
	// that was read before the clock was set.
	wall := time.Now().Add(time.Hour).Round(0)
	if steady := wall.Sub(from); steady < 59*time.Minute {
		t.Errorf("wall moved by %v, want an hour", steady)
	}
}
