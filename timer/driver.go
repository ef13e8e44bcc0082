package timer

import (
	"sync"
	"time"

	"github.com/RussellLuo/timingwheel"
)

// driver is one wheel of the library, and the goroutine that sets its timers.
// Nobody else does: setting one can block for good in a wheel that has
// deadlocked or stopped, and then only this goroutine hangs, and is replaced
// with its wheel. A timer that the library fires runs in a goroutine of its own.
type driver struct {
	lib  *timingwheel.TimingWheel
	wake chan struct{} // there is something to set
	quit chan struct{}
	idle sync.WaitGroup // the goroutine

	arms   []arm // to set; guarded by Wheel.mu, as is all below
	beats  bool  // the heartbeat is to be set
	missed int   // looks of watch since the last heartbeat
}

// arm asks that a stretch be seen to.
type arm struct {
	stretch int64
	n       uint64 // its number
}

// startDriver returns a running driver with its heartbeat set. It is called, and the driver put in its
// place, with Wheel.mu held: a heartbeat of a driver that is not there yet would be its last.
func (w *Wheel) startDriver() *driver {
	d := &driver{
		lib:   timingwheel.NewTimingWheel(tick, int64(w.turn/tick)),
		wake:  make(chan struct{}, 1),
		quit:  make(chan struct{}),
		beats: true,
	}
	d.lib.Start()
	d.idle.Go(func() { w.run(d) })
	signal(d.wake)
	return d
}

// close stops d. It waits for its goroutine before it stops the library,
// because the library may block whoever sets a timer while it stops.
func (d *driver) close() {
	close(d.quit)
	d.idle.Wait()
	d.lib.Stop()
}

// arm leaves a stretch to be set. Called with Wheel.mu held.
func (d *driver) arm(stretch int64, n uint64) {
	d.arms = append(d.arms, arm{stretch, n})
	signal(d.wake)
}

// alive notes a heartbeat and has the next one set. Called with Wheel.mu held.
func (d *driver) alive() {
	d.missed, d.beats = 0, true
	signal(d.wake)
}

// run sets the timers of d until it closes.
func (w *Wheel) run(d *driver) {
	for {
		select {
		case <-d.quit:
			return
		case <-d.wake:
		}
		arms, beats := w.toSet(d)
		if beats {
			d.lib.AfterFunc(heartbeat, func() { w.beat(d) })
		}
		for _, a := range arms {
			w.set(d, a)
		}
	}
}

func (w *Wheel) toSet(d *driver) (arms []arm, beats bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	arms, beats = d.arms, d.beats
	d.arms, d.beats = nil, false
	return arms, beats
}

// set notifies what is due in a stretch, and sets the timer for the rest. A slot
// that is nearly due is not left to the library, which may have begun to sleep
// past it.
func (w *Wheel) set(d *driver, a arm) {
	next, more := w.tell(a.stretch, a.n)
	if !more {
		return
	}
	fire := func() { w.fire(a.stretch, a.n) }
	local := time.Now()
	left := time.UnixMilli(next).Sub(w.now())
	if left < nearlyDue {
		d.idle.Go(fire)
		return
	}
	left = min(left, w.turn*3/4) // Now has been set back since: it will fire early, and be set again
	d.lib.AfterFunc(early(local, left), fire)
}

// nearlyDue is the least that the library is asked to wait: so the millisecond
// that it is told to fire in has not begun.
const nearlyDue = 2 * tick

// early returns what to tell the library at a local time so that it fires within
// the last two milliseconds of what is left, for fire to sleep out the rest.
//
// The library adds the delay to its own reading of the clock, truncates the sum
// to a millisecond and fires in the course of that millisecond, wherever its own
// sleep began. So the millisecond wanted is the last that ends when the slot is
// due, or before. The sum is aimed at its middle: read up to half a tick later
// than here, as it must be, or set back a little by NTP, it still truncates to
// that one. Nothing is added for safety, since fire looks at Now.
func early(local time.Time, left time.Duration) time.Duration {
	wanted := local.Add(left - tick).Truncate(tick)
	return wanted.Add(tick / 2).Sub(local)
}

// signal makes sure that a token is in c, which has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
