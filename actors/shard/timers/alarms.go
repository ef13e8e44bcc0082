package timers

import (
	"strconv"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// Alarm is one moment of the shard's clock: set again, it is at another one. Its queue is open from the first moment
// until Close.
type Alarm struct {
	timers *Timers
	notify func(ms int64)
	queue  *timer.Queue // nil: it was not set
}

const theAlarm = "alarm" // the one entry of the queue

// NewAlarm returns an alarm that is not set. notify hands the moment to the shard's actor, which asks Rings.
func (t *Timers) NewAlarm(notify func(ms int64)) Alarm { return Alarm{timers: t, notify: notify} }

// Set sets it for a moment, in place of any other.
func (a *Alarm) Set(at store.Millis) {
	if a.queue == nil {
		a.queue = a.timers.OpenQueue(a.notify)
	}
	a.queue.Remove(theAlarm)
	a.queue.Insert(theAlarm, int64(at))
}

// Rings reports whether a moment that the alarm told of has come. If that is not so yet by the shard's clock, it is
// told of again. It has not once the alarm was closed.
func (a *Alarm) Rings(ms int64) bool {
	if a.queue == nil {
		return false
	}
	if a.queue.Take(ms); a.timers.TooEarly(ms) {
		a.Set(store.Millis(ms))
		return false
	}
	return true
}

// Clear takes the moment back.
func (a *Alarm) Clear() {
	if a.queue != nil {
		a.queue.Remove(theAlarm)
	}
}

// Close ends its queue, until it is set again.
func (a *Alarm) Close() {
	if a.queue != nil {
		a.timers.CloseQueue(a.queue)
		a.queue = nil
	}
}

// Alarms are milliseconds in a timer queue, each once.
type Alarms struct{ queue *timer.Queue }

// OpenAlarms returns a queue of milliseconds of the shard's clock.
func (t *Timers) OpenAlarms(notify func(ms int64)) Alarms { return Alarms{t.OpenQueue(notify)} }

// CloseAlarms ends it.
func (t *Timers) CloseAlarms(a Alarms) { t.CloseQueue(a.queue) }

// Set adds a millisecond.
func (a Alarms) Set(ms store.Millis) { a.queue.Insert(alarmID(ms), int64(ms)) }

// Clear takes one back.
func (a Alarms) Clear(ms store.Millis) { a.queue.Remove(alarmID(ms)) }

// Take returns what was set for a moment.
func (a Alarms) Take(ms store.Millis) []store.Millis {
	entries := a.queue.Take(int64(ms))
	taken := make([]store.Millis, len(entries))
	for i, e := range entries {
		taken[i] = store.Millis(e.Due)
	}
	return taken
}

// Close ends the queue.
func (a Alarms) Close() { a.queue.Close() }

func alarmID(ms store.Millis) string { return strconv.FormatInt(int64(ms), 10) }

// alarmOf is the moment of which alarmID is the id.
func alarmOf(id string) store.Millis {
	ms, _ := strconv.ParseInt(id, 10, 64)
	return store.Millis(ms)
}
