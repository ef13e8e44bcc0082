package timer

import "time"

// stepLimit is what the machine's clock may gain or lose against the steady one
// between two looks at it before that counts as a step. NTP slews it by no more
// than half a millisecond a second.
const stepLimit = 10 * time.Millisecond

// closeLimit is how long Close waits for the library. One that has deadlocked
// never stops, and its goroutines are then left behind.
const closeLimit = 5 * time.Second

// watch replaces the driver when its heartbeat fails, and when the machine's
// clock has stepped: set back, the library would be late by as much and take
// every new timer as due at once.
func (w *Wheel) watch() {
	beats := time.NewTicker(heartbeat)
	defer beats.Stop()
	for {
		due := false
		select {
		case <-w.quit:
			return
		case <-w.suspect:
		case <-beats.C:
			due = true
		}
		if why := w.check(time.Now(), due); why != "" {
			w.rebuild(why)
		}
	}
}

// check returns why the driver must be replaced, or nothing. due says that a
// heartbeat should have come since the last time. A machine that stood still
// for a while counts as one look, however long: it is not the wheel's fault.
func (w *Wheel) check(now time.Time, due bool) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.checked
	w.checked = now
	if stepped(last, now) {
		return "machine clock stepped"
	}
	if due {
		w.driver.missed++
	}
	if w.driver.missed > 1+lateBeats {
		return "no heartbeat"
	}
	return ""
}

// stepped tells whether the machine's clock was set between two readings.
func stepped(from, to time.Time) bool {
	wall := to.Round(0).Sub(from.Round(0)) // Round(0) strips the steady reading
	return (wall - to.Sub(from)).Abs() > stepLimit
}

// rebuild replaces the driver and arms everything on the new one. The old one
// is stopped aside: if it is deadlocked, that never ends.
func (w *Wheel) rebuild(why string) {
	now := w.now()
	w.mu.Lock()
	old := w.driver
	w.driver = w.startDriver()
	w.rebuilds++
	w.rearm(now)
	w.mu.Unlock()
	w.drivers.Go(old.close)
	w.log.Warn("timing wheel replaced", "err", why)
}

// awaitDrivers waits until every driver has stopped, within reason.
func (w *Wheel) awaitDrivers() {
	stopped := make(chan struct{})
	go func() {
		w.drivers.Wait()
		close(stopped)
	}()
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case <-stopped:
	case <-limit.C:
		w.log.Error("timing wheel does not stop", "err", "library deadlocked")
	}
}
