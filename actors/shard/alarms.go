package shard

import (
	"strconv"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

// alarms are milliseconds in a timer queue, each once.
type alarms struct{ queue *timer.Queue }

// Set adds a millisecond.
func (a alarms) Set(ms store.Millis) { a.queue.Insert(alarmID(ms), int64(ms)) }

// Clear takes one back.
func (a alarms) Clear(ms store.Millis) { a.queue.Remove(alarmID(ms)) }

// Take returns what was set for a moment.
func (a alarms) Take(ms store.Millis) []store.Millis {
	entries := a.queue.Take(int64(ms))
	taken := make([]store.Millis, len(entries))
	for i, e := range entries {
		taken[i] = store.Millis(e.Due)
	}
	return taken
}

// Close ends the queue.
func (a alarms) Close() { a.queue.Close() }

func alarmID(ms store.Millis) string { return strconv.FormatInt(int64(ms), 10) }

// alarmOf is the moment of which alarmID is the id.
func alarmOf(id string) store.Millis {
	ms, _ := strconv.ParseInt(id, 10, 64)
	return store.Millis(ms)
}
