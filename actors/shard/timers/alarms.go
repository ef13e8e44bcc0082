package timers

import (
	"strconv"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

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
