package forecast

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Collision is a span of time in which more tasks are due than are let through, and where
// there is room.
type Collision struct {
	At    store.Millis  // when the span begins
	Span  time.Duration // a second, or a bucket
	Due   int64         // tasks in it
	Limit int64         // that are let through in it
	Rated bool          // it is the topic's rate that does not let more through

	// The emptiest part of what comes behind: a minute of an hour. 0: it was not looked for.
	Emptiest    store.Millis
	EmptiestDue int64

	// What would have the schedule go elsewhere; empty where that does not.
	Cron  string
	Slack time.Duration
}

// Meeting is a schedule of which the next runs may meet too many other tasks.
type Meeting struct {
	Topic    *store.Topic
	Schedule *schedule.Schedule
	Wake     store.Millis          // of its cell, as it is stored; 0: it is not
	Due      func() []store.Millis // of its next runs, at most MeetingRuns
}

// MeetingRuns is how many of the next runs of a schedule are looked at.
const MeetingRuns = 10

// Limit is how many tasks a topic lets through in a second before too many are due; most is
// that of topics without a rate.
func Limit(t *store.Topic, most int) (perSecond int64, rated bool) {
	r := t.Limits.Rate
	if !r.Limited() {
		return int64(most), false
	}
	perSecond = max(int64(r.Count)*int64(time.Second)/int64(r.Period), int64(min(r.Most(), r.Count)), 1)
	return min(perSecond, int64(most)), perSecond <= int64(most)
}

const second = store.Millis(1000)

// Seconds are the bounds of the seconds in which moments lie, rising.
func Seconds(moments []store.Millis) (bounds []store.Millis) {
	for _, at := range moments {
		start := at - at%second
		bounds = append(bounds, start, start+second)
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// Worst returns the second of some moments in which most is due over a limit. Bounds are the
// Seconds of the moments, counts what is due there as a histogram, and own how much the
// schedule itself adds in a second.
func Worst(moments, bounds []store.Millis, counts []int64, own func(second store.Millis) int64, limit int64) (c Collision, found bool) {
	for _, at := range moments {
		start := at - at%second
		i, there := slices.BinarySearch(bounds, start)
		if !there {
			continue
		}
		if due := counts[i+1] + own(start); due > max(limit, c.Due) {
			c, found = Collision{At: start, Span: time.Second, Due: due, Limit: limit}, true
		}
	}
	return c, found
}

// minutes is how many are looked through for the emptiest.
const minutes = 60

// Minutes are the bounds of the minutes of the hour that begins with a collision's.
func (c *Collision) Minutes() []store.Millis {
	minute := store.Millis(time.Minute.Milliseconds())
	return Range{From: c.At - c.At%minute, Bucket: time.Minute, Count: minutes}.Bounds(0)
}

// Solve finds the emptiest of Minutes by their counts, and what would have a schedule go there.
// Of several that are as empty its name says which: not all are sent to the same.
func (c *Collision) Solve(s *schedule.Schedule, counts []int64) {
	bounds := c.Minutes()
	least := slices.Min(counts[1 : minutes+1])
	var empty []int
	for i := range minutes {
		if counts[i+1] == least {
			empty = append(empty, i)
		}
	}
	i := empty[place.HashID(s.Name)%uint64(len(empty))]
	c.Emptiest, c.EmptiestDue = bounds[i], least
	switch {
	case s.Audience != nil: // its window spreads it
	case i == 0: // the minute itself has room: in it there are 59 other seconds
		c.Slack = time.Minute
	default:
		c.Slack = bounds[i+1].Sub(c.At)
	}
	c.Cron = spreadCron(s.Timetable.Entries[0].Cron)
}

var descriptors = map[string]string{
	"@yearly": "H 0 1 1 *", "@annually": "H 0 1 1 *", "@monthly": "H 0 1 * *", "@weekly": "H 0 * * 0", "@daily": "H 0 * * *", "@midnight": "H 0 * * *", "@hourly": "H * * * *",
}

// spreadCron is an expression with H where it names one minute, or where it names one second;
// empty when it has neither.
func spreadCron(expression string) string {
	fields := strings.Fields(expression)
	switch {
	case len(fields) == 1:
		return descriptors[strings.ToLower(expression)]
	case len(fields) == 5 && isNumber(fields[0]):
		fields[0] = "H"
	case len(fields) == 5 && !strings.Contains(fields[0], "H"):
		fields = slices.Insert(fields, 0, "H")
	case len(fields) == 6 && isNumber(fields[0]):
		if fields[0] = "H"; isNumber(fields[1]) {
			fields[1] = "H"
		}
	default:
		return ""
	}
	return strings.Join(fields, " ")
}

func isNumber(field string) bool {
	return field != "" && strings.Trim(field, "0123456789") == ""
}

// Busiest returns the buckets of a forecast in which most is due over a limit of tasks a
// second, at most so many, in order.
func (f *Forecast) Busiest(perSecond int64, most int) (all []Collision) {
	due := f.Due().Rounded()
	limit := max(1, perSecond*f.Bucket.Milliseconds()/1000)
	for i, n := range due {
		if n > limit {
			all = append(all, Collision{At: f.start(i), Span: f.Bucket, Due: n, Limit: limit})
		}
	}
	slices.SortStableFunc(all, func(a, b Collision) int { return cmp.Compare(b.Due, a.Due) })
	all = all[:min(most, len(all))]
	slices.SortFunc(all, func(a, b Collision) int { return cmp.Compare(a.At, b.At) })
	return all
}
