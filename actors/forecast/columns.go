package forecast

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/store"
)

// Range is the span of a forecast, and how it is divided.
type Range struct {
	From   store.Millis
	Bucket time.Duration // whole milliseconds
	Count  int           // buckets
}

// To is the end of the last bucket.
func (r Range) To() store.Millis { return r.start(r.Count) }

func (r Range) start(i int) store.Millis {
	return r.From + store.Millis(i)*store.Millis(r.Bucket.Milliseconds())
}

// Bounds are the starts of the buckets and the end of the last, moved by a time.
func (r Range) Bounds(by time.Duration) []store.Millis {
	bounds := make([]store.Millis, r.Count+1)
	for i := range bounds {
		bounds[i] = r.start(i).Add(by)
	}
	return bounds
}

// bucketOf is the bucket of a moment; -1 before the first, Count behind the last.
func (r Range) bucketOf(at store.Millis) int {
	if at < r.From {
		return -1
	}
	return int(min(int64(at-r.From)/r.Bucket.Milliseconds(), int64(r.Count)))
}

// Column has a number for each bucket. What is estimated is no whole number.
type Column []float64

// add adds n at a moment, if that is in the range.
func (c Column) add(r Range, at store.Millis, n float64) {
	if i := r.bucketOf(at); i >= 0 && i < len(c) {
		c[i] += n
	}
}

// spread adds n evenly over the time from one moment to another; at one, if they are the same.
func (c Column) spread(r Range, from, to store.Millis, n float64) {
	if to <= from {
		c.add(r, from, n)
		return
	}
	width := float64(to - from)
	for i := max(0, r.bucketOf(from)); i < len(c) && r.start(i) < to; i++ {
		if part := min(to, r.start(i+1)) - max(from, r.start(i)); part > 0 {
			c[i] += n * float64(part) / width
		}
	}
}

// Rounded is the column in whole numbers.
func (c Column) Rounded() []int64 {
	out := make([]int64, len(c))
	for i, n := range c {
		out[i] = int64(math.Round(n))
	}
	return out
}

// Forecast is how many tasks are due in each bucket of a range.
type Forecast struct {
	Range
	Pending    Column // that are there
	Next       Column // of each schedule the first occurrence to come
	Later      Column // the others
	Recipients Column // tasks for recipients of audiences that are not made yet
	Overdue    int64  // pending tasks that are due before the range
	Inexact    bool   // something was estimated
}

// New returns a forecast with nothing in it.
func New(r Range) *Forecast {
	c := func() Column { return make(Column, r.Count) }
	return &Forecast{Range: r, Pending: c(), Next: c(), Later: c(), Recipients: c()}
}

// AddPending adds pending tasks as the store counts them by Bounds(0).
func (f *Forecast) AddPending(counts []int64) {
	f.Overdue += counts[0]
	f.Pending.addCounts(counts)
}

// AddWakes adds the next occurrences of schedules as the store counts them by Bounds(-Lead):
// a schedule wakes that long before.
func (f *Forecast) AddWakes(counts []int64) { f.Next.addCounts(counts) }

func (c Column) addCounts(counts []int64) {
	for i := range c {
		c[i] += float64(counts[i+1])
	}
}

// Add adds another forecast of the same range.
func (f *Forecast) Add(other *Forecast) {
	for i := range f.Pending {
		f.Pending[i] += other.Pending[i]
		f.Next[i] += other.Next[i]
		f.Later[i] += other.Later[i]
		f.Recipients[i] += other.Recipients[i]
	}
	f.Overdue += other.Overdue
	f.Inexact = f.Inexact || other.Inexact
}

// Due is how many tasks are due in each bucket.
func (f *Forecast) Due() Column {
	due := make(Column, f.Count)
	for i := range due {
		due[i] = f.Pending[i] + f.Next[i] + f.Later[i] + f.Recipients[i]
	}
	return due
}
