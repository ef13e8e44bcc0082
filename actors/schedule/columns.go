package schedule

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/schedule/cell"
	"github.com/ddq-io/ddq/store"
)

// skipped is added to the reasons in the history, where outcomes are, too.
const skipped = 16

// decoder reads columns. It remembers the first thing that is wrong.
type decoder struct{ err error }

func (d *decoder) check(ok bool, format string, args ...any) {
	if !ok && d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// distances are moments, each but the first as its distance from the one before.
func distances(list []store.Millis) []int64 {
	if len(list) == 0 {
		return nil
	}
	column, last := make([]int64, len(list)), store.Millis(0)
	for i, at := range list {
		column[i], last = int64(at-last), at
	}
	return column
}

func moments(column []int64) (list []store.Millis) {
	last := store.Millis(0)
	for _, d := range column {
		last += store.Millis(d)
		list = append(list, last)
	}
	return list
}

// column has the counts of 1 to last, as far as there are some.
func column[K Outcome | Reason](m map[K]int64, last K) (list []int64) {
	for k := K(1); k <= last; k++ {
		list = append(list, m[k])
	}
	for len(list) > 0 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	return list
}

func counts[K Outcome | Reason](list []int64) map[K]int64 {
	m := make(map[K]int64)
	for i, n := range list {
		if n != 0 {
			m[K(i+1)] = n
		}
	}
	return m
}

// encodeOccurrences writes those of things that have one each.
func encodeOccurrences[T any](list []T, of func(T) Occurrence) *cell.Occurrences {
	if len(list) == 0 {
		return nil
	}
	c, last := &cell.Occurrences{}, store.Millis(0)
	for i, e := range list {
		o := of(e)
		c.At, last = append(c.At, int64(o.At-last)), o.At
		if o.Origin == ByTimetable && c.Origins == nil {
			continue
		}
		for len(c.Origins) < i {
			c.Origins = append(c.Origins, uint32(ByTimetable))
		}
		c.Origins = append(c.Origins, uint32(o.Origin))
		if o.Origin != ByTimetable {
			c.Numbers = append(c.Numbers, o.N)
		}
	}
	return c
}

func (d *decoder) occurrences(c *cell.Occurrences) (list []Occurrence) {
	numbers := c.GetNumbers()
	for i, at := range moments(c.GetAt()) {
		o := Occurrence{At: at, Origin: ByTimetable}
		if len(c.Origins) > 0 {
			o.Origin = Origin(d.uint(c.Origins, i))
		}
		d.check(o.Origin >= ByTimetable && o.Origin <= ByBackfill, "origin %d", o.Origin)
		if o.Origin != ByTimetable {
			d.check(len(numbers) > 0, "numbers of occurrences")
			if d.err != nil {
				return nil
			}
			o.N, numbers = numbers[0], numbers[1:]
		}
		list = append(list, o)
	}
	return list
}

func encodeRuns(runs []Run) *cell.Runs {
	if len(runs) == 0 {
		return nil
	}
	c := &cell.Runs{Of: encodeOccurrences(runs, func(r Run) Occurrence { return r.Occurrence })}
	for i, r := range runs {
		if r.Due != r.At && c.Due == nil {
			c.Due = make([]int64, i)
		}
		if c.Due != nil {
			c.Due = append(c.Due, int64(r.Due-r.At))
		}
		if r.Begun && c.Begun == nil {
			c.Begun = make([]bool, i)
		}
		if c.Begun != nil {
			c.Begun = append(c.Begun, r.Begun)
		}
		if r.Walk && c.Walks == nil {
			c.Walks = make([]bool, i)
		}
		if c.Walks != nil {
			c.Walks = append(c.Walks, r.Walk)
		}
		if r.Flow && c.Flows == nil {
			c.Flows = make([]bool, i)
		}
		if c.Flows != nil {
			c.Flows = append(c.Flows, r.Flow)
		}
		if r.Replaced && c.Replaced == nil {
			c.Replaced = make([]bool, i)
		}
		if c.Replaced != nil {
			c.Replaced = append(c.Replaced, r.Replaced)
		}
	}
	return c
}

func (d *decoder) runs(c *cell.Runs) (runs []Run) {
	for i, o := range d.occurrences(c.GetOf()) {
		r := Run{Occurrence: o, Due: o.At}
		if len(c.Due) > 0 {
			r.Due += store.Millis(d.int(c.Due, i))
		}
		if len(c.Begun) > 0 {
			d.check(i < len(c.Begun), "runs that began")
			r.Begun = i < len(c.Begun) && c.Begun[i]
		}
		if len(c.Walks) > 0 {
			d.check(i < len(c.Walks), "runs that are walks")
			r.Walk = i < len(c.Walks) && c.Walks[i]
		}
		if len(c.Flows) > 0 {
			d.check(i < len(c.Flows), "runs that are workflows")
			r.Flow = i < len(c.Flows) && c.Flows[i]
		}
		if len(c.Replaced) > 0 {
			d.check(i < len(c.Replaced), "runs that were replaced")
			r.Replaced = i < len(c.Replaced) && c.Replaced[i]
		}
		runs = append(runs, r)
	}
	return runs
}

func encodeHistory(list []Past) *cell.History {
	if len(list) == 0 {
		return nil
	}
	c := &cell.History{Of: encodeOccurrences(list, func(h Past) Occurrence { return h.Occurrence })}
	for _, h := range list {
		if h.Reason != 0 {
			c.What, c.Counts = append(c.What, skipped+uint32(h.Reason)), append(c.Counts, h.Count)
			continue
		}
		started := int64(0)
		if h.Started != 0 {
			started = 1 + int64(h.Started-h.Due)
			if started <= 0 {
				started-- // 0 is taken
			}
		}
		if h.Flow && c.Flows == nil {
			c.Flows = make([]bool, len(c.Due))
		}
		if c.Flows != nil {
			c.Flows = append(c.Flows, h.Flow)
		}
		c.What = append(c.What, uint32(h.Outcome))
		c.Due, c.Started, c.Ended = append(c.Due, int64(h.Due-h.At)), append(c.Started, started), append(c.Ended, int64(h.Ended-h.Due))
	}
	return c
}

func (d *decoder) history(c *cell.History) (list []Past) {
	skips, runs := 0, 0
	for i, o := range d.occurrences(c.GetOf()) {
		h, what := Past{Occurrence: o}, d.uint(c.What, i)
		if what > skipped {
			h.Reason, h.Count = Reason(what-skipped), d.int(c.Counts, skips)
			d.check(h.Reason <= lastReason, "reason %d", h.Reason)
			skips++
		} else {
			h.Outcome, h.Due = Outcome(what), o.At+store.Millis(d.int(c.Due, runs))
			d.check(h.Outcome >= Done && h.Outcome <= Removed, "outcome %d", what)
			switch started := d.int(c.Started, runs); {
			case started > 0:
				h.Started = h.Due + store.Millis(started-1)
			case started < 0:
				h.Started = h.Due + store.Millis(started)
			}
			h.Ended = h.Due + store.Millis(d.int(c.Ended, runs))
			h.Flow = runs < len(c.Flows) && c.Flows[runs]
			runs++
		}
		list = append(list, h)
	}
	return list
}

// int is a field of a column.
func (d *decoder) int(column []int64, i int) int64 {
	d.check(i < len(column), "a column has %d fields", len(column))
	if d.err != nil {
		return 0
	}
	return column[i]
}

func (d *decoder) uint(column []uint32, i int) uint32 {
	d.check(i < len(column), "a column has %d fields", len(column))
	if d.err != nil {
		return 0
	}
	return column[i]
}
