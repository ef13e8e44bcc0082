package pulse

import "github.com/ddq-io/ddq/store"

// Pulse counts what happens to the tasks of a topic. It takes 2 kB, and up to 20 kB more for the
// lateness of deliveries.
type Pulse struct {
	minute, hour ring
	last         store.Millis // something happened
}

// New returns a pulse that has counted nothing.
func New() *Pulse { return &Pulse{minute: newRing(lastMinute), hour: newRing(lastHour)} }

// Count counts what has happened now.
func (p *Pulse) Count(now store.Millis, t *Tally) {
	p.minute.count(now, t)
	p.hour.count(now, t)
	p.last = now
}

// Deliver counts deliveries that were late by so much. It changes late.
func (p *Pulse) Deliver(now store.Millis, late []store.Millis) {
	runs := runsOf(late)
	p.minute.deliver(now, &runs)
	p.hour.deliver(now, &runs)
	p.last = now
}

// Idle reports whether all that was counted is too long ago to be reported.
func (p *Pulse) Idle(now store.Millis) bool {
	return now > p.last+Kept+lastHour.step
}

// Report is what has happened before now.
func (p *Pulse) Report(now store.Millis) Report {
	return Report{Minute: p.minute.window(now), Hour: p.hour.window(now)}
}
