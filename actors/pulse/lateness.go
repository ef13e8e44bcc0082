package pulse

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ddq-io/ddq/store"
)

// longest is the greatest lateness that is told from greater ones: in ms, 49 days.
const longest = math.MaxUint32

// Distribution is how late deliveries were, in ms: within 6 %. It takes room for what it has only.
type Distribution struct {
	*hdrhistogram.PackedHistogram
}

// NewDistribution returns an empty one.
func NewDistribution() Distribution { return Distribution{hdrhistogram.NewPacked(1, longest, 1)} }

// Record counts n deliveries.
func (d Distribution) Record(ms, n int64) {
	_ = d.RecordValues(min(max(ms, 0), longest), n) // there is room for what is in its bounds
}

// lateness has a distribution for each part of a span, and one for the present part.
type lateness struct {
	length store.Millis // of a part
	parts  []part
}

// part is a distribution and whose it is. It has none before the first delivery.
type part struct {
	number int64
	Distribution
}

func newLateness(s span) lateness {
	return lateness{s.length() / store.Millis(s.parts), make([]part, s.parts+1)}
}

// at is the distribution of a moment, empty when its part has just begun.
func (l *lateness) at(now store.Millis) Distribution {
	number := int64(now / l.length)
	p := &l.parts[number%int64(len(l.parts))]
	switch {
	case p.PackedHistogram == nil:
		p.Distribution = NewDistribution()
	case p.number != number:
		p.Reset()
	}
	p.number = number
	return p.Distribution
}

// of is the sum of the parts that are within the span, if only in part; nil when nothing was delivered.
func (l *lateness) of(now store.Millis) *Distribution {
	var sum *Distribution
	for i := range l.parts {
		p := &l.parts[i]
		if age := int64(now/l.length) - p.number; p.PackedHistogram == nil || age < 0 || age >= int64(len(l.parts)) {
			continue
		}
		if sum == nil {
			sum = new(Distribution)
			*sum = NewDistribution()
		}
		sum.Merge(p.PackedHistogram)
	}
	return sum
}

// runs are deliveries by how late they were: most are late by a few ms, and those that are late by
// as much are recorded together.
type runs struct {
	n      int
	latest store.Millis
	short  [32]uint32     // how many, by ms
	long   []store.Millis // the others
}

// runsOf sorts late, in which it keeps those that are not short.
func runsOf(late []store.Millis) (r runs) {
	r.n, r.long = len(late), late[:0]
	for _, ms := range late {
		r.latest = max(r.latest, ms)
		if ms < store.Millis(len(r.short)) {
			r.short[max(0, ms)]++
		} else {
			r.long = append(r.long, ms)
		}
	}
	return r
}
