package pebblestore

import (
	"math"

	"github.com/ddq-io/ddq/store"
)

// dueCounts are how many pending tasks of a shard are due in each hour, and in each minute of
// most of those hours. They are in memory only: a walk of all tasks makes them once somebody
// asks, and from then on each change of the index of pending tasks changes them.
type dueCounts struct {
	hours   map[int64]*dueHour // since 1970; that of -1 is everything before
	minutes int                // how many of them have minutes

	// complete says that the walk is over. Until then there are only the changes since it began,
	// some of which are negative.
	complete bool
	asked    store.Millis // when somebody last asked
}

// dueHour is how many tasks are due in an hour.
type dueHour struct {
	tasks   int64
	minutes *[hourMinutes]int32 // nil: not known
}

// dueChange is by how many tasks a minute changes.
type dueChange struct{ minute, n int64 }

const (
	minuteMillis = 60_000
	hourMinutes  = 60

	// mostDueMinutes is of how many hours of a shard minutes are counted, at 240 bytes each.
	mostDueMinutes = 1000

	// dueUnused is how long after the last question the counts are given up. Then changes cost
	// nothing.
	dueUnused = 3_600_000
)

func newDueCounts(now store.Millis) *dueCounts {
	return &dueCounts{hours: make(map[int64]*dueHour), asked: now}
}

// minuteOf is the minute since 1970 that a moment lies in; -1 for all before.
func minuteOf(at store.Millis) int64 {
	if at < 0 {
		return -1
	}
	return int64(at) / minuteMillis
}

// minuteSpan are the first and the last moment of n minutes from one on. -1 is all before 1970.
func minuteSpan(minute, n int64) (first, last store.Millis) {
	if minute < 0 {
		return math.MinInt64, -1
	}
	first, last = store.Millis(minute*minuteMillis), store.Millis((minute+n)*minuteMillis-1)
	if last < first { // the last minute that there is
		last = math.MaxInt64
	}
	return first, last
}

// hourSpan are the first and the last moment of an hour.
func hourSpan(hour int64) (first, last store.Millis) {
	if hour < 0 {
		return minuteSpan(-1, 1)
	}
	return minuteSpan(hour*hourMinutes, hourMinutes)
}

// add counts n tasks of a minute, which are fewer when it is negative.
func (d *dueCounts) add(c dueChange) {
	hour := int64(-1)
	if c.minute >= 0 {
		hour = c.minute / hourMinutes
	}
	h := d.hours[hour]
	if h == nil {
		h = new(dueHour)
		d.hours[hour] = h
		if hour >= 0 && d.minutes < mostDueMinutes {
			h.minutes = new([hourMinutes]int32)
			d.minutes++
		}
	}
	h.tasks += c.n
	if h.minutes != nil {
		h.minutes[c.minute%hourMinutes] += int32(c.n) //nolint:gosec // a batch has no more tasks
	}
	if h.tasks == 0 && d.complete {
		d.drop(hour, h)
	}
}

func (d *dueCounts) drop(hour int64, h *dueHour) {
	delete(d.hours, hour)
	if h.minutes != nil {
		d.minutes--
	}
}

// complement adds what a walk found in the shard as it was when the counts began. They are
// complete then.
func (d *dueCounts) complement(found *dueCounts) {
	for hour, f := range found.hours {
		h := d.hours[hour]
		if h == nil {
			d.hours[hour] = f
			if f.minutes != nil {
				d.minutes++
			}
			continue
		}
		h.tasks += f.tasks
		switch {
		case h.minutes == nil:
		case f.minutes == nil:
			h.minutes = nil
			d.minutes--
		default:
			for i, n := range f.minutes {
				h.minutes[i] += n
			}
		}
	}
	for hour, h := range d.hours {
		if h.tasks == 0 {
			d.drop(hour, h)
		}
	}
	d.complete = true
}

// countDue counts a task that becomes pending, or with -1 one that is pending no more, once
// the batch is applied.
func (b *batch) countDue(at store.Millis, n int64) {
	d := b.sh.due
	if d == nil {
		return
	}
	if d.complete && b.ms > d.asked+dueUnused {
		b.sh.due = nil
		return
	}
	minute, changes := minuteOf(at), b.next.due
	if last := len(changes) - 1; last >= 0 && changes[last].minute == minute {
		changes[last].n += n
		return
	}
	b.next.due = append(changes, dueChange{minute, n})
}
