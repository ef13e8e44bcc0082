package overview

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

const (
	second = store.Millis(time.Second / time.Millisecond)

	// What owners have not loaded is read from the store: so many tasks of a shard, and
	// so many for an answer.
	pageAhead = 500
	mostAhead = 20_000
)

// due counts the tasks of a topic that come due in each of the next seconds.
type due struct {
	from   store.Millis
	until  store.Millis // all that is due before is counted
	counts []int64
}

func newDue(from store.Millis) *due {
	return &due{from, from + fleet.DueSeconds*second, make([]int64, fleet.DueSeconds)}
}

func (d *due) add(at store.Millis, n int64) {
	if i := (at - d.from) / second; at >= d.from && i < fleet.DueSeconds {
		d.counts[i] += n
	}
}

// end is when the last of the seconds is over.
func (d *due) end() store.Millis { return d.from + fleet.DueSeconds*second }

// owned adds what the owner of a shard knows of, and returns before when that is all: what is
// due later is left to who reads it from the store.
func (d *due) owned(load *fleet.OwnedShard, st *store.Stats) (until store.Millis) {
	if load == nil || load.DueSoon.Until == 0 {
		return d.from
	}
	until = max(d.from, load.DueSoon.Until)
	if st.Pending-st.Ready <= int64(load.Wheel) {
		until = d.end() // it has them all
	}
	for i, n := range load.DueSoon.Counts {
		if at := load.DueSoon.From + store.Millis(i)*second; at < until {
			d.add(at, n)
		}
	}
	return until
}

// known is the seconds of which all is counted.
func (d *due) known() []int64 {
	return d.counts[:max(0, min(fleet.DueSeconds, (d.until-d.from)/second))]
}

// ahead reads what owners have not loaded, until it has read enough.
type ahead struct {
	store store.Reader
	left  int // tasks that may be read
}

// count adds the tasks of a shard that are due from a time on, and returns before when that is all.
func (a *ahead) count(ctx context.Context, at store.Shard, from store.Millis, d *due) (until store.Millis) {
	limit := min(pageAhead, a.left)
	if limit == 0 {
		return from
	}
	_, page, err := a.store.Window(ctx, at, store.WindowQuery{After: store.Entry{Due: from}, To: d.end() - 1, Limit: limit})
	if err != nil {
		return from
	}
	a.left -= len(page)
	for _, e := range page {
		d.add(e.Due, 1)
	}
	if len(page) < limit {
		return d.end()
	}
	return page[len(page)-1].Due
}
