package schedule

import (
	"slices"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Count returns how many occurrences a range has, both ends included; most+1 for more.
func Count(table *timetable.Timetable, from, to store.Millis, most int) (n int) {
	for at, ok := table.Next((from - 1).Time()); ok && at.UnixMilli() <= int64(to) && n <= most; at, ok = table.Next(at) {
		n++
	}
	return n
}

// backfills is what a step does about ranges that are filled.
type backfills struct{ *step }

func (p backfills) start(e StartBackfill) {
	known := slices.Contains(p.s.Requests, e.ID) || slices.ContainsFunc(p.s.Backfills, func(b Backfill) bool { return b.ID == e.ID })
	if known || len(p.s.Backfills) >= MaxBackfills {
		return
	}
	if p.over() {
		return
	}
	if e.Overlap != Allow {
		p.takeBack(ahead)
	}
	p.s.Requests = lastOf(append(p.s.Requests, e.ID), requests)
	p.s.Backfills = append(p.s.Backfills, Backfill{
		ID: e.ID, From: e.From, To: min(e.To, p.Now), Overlap: e.Overlap, Done: e.From - 1, Total: e.Total,
	})
}

func (p backfills) cancel(id string) {
	p.s.Backfills = slices.DeleteFunc(p.s.Backfills, func(b Backfill) bool { return b.ID == id })
}

// run makes the next runs of each range, as far as its policy lets it.
func (p backfills) run() {
	for i := 0; i < len(p.s.Backfills); {
		if p.fill(&p.s.Backfills[i]) {
			p.s.Backfills = slices.Delete(p.s.Backfills, i, i+1)
		} else {
			i++
		}
	}
}

// fill reports whether the range has no more occurrences.
func (p backfills) fill(b *Backfill) (over bool) {
	for {
		at, ok := p.next(b.Done)
		switch {
		case !ok || at > b.To:
			return true
		case b.Overlap != Allow && (p.isBusy() || p.waitsFirst()), len(p.s.Open) >= MaxOpen:
			return false // until a run ends
		case p.Refused:
			p.wake(p.Now.Add(retryRefused))
			return false
		case p.madeEnough():
			p.wake(p.Now)
			return false
		}
		b.Done = at
		o := Occurrence{At: at, Origin: ByBackfill, N: hashOf(b.ID)}
		if p.Excluded != nil && p.Excluded(at.Time()) {
			p.skip(o, Excluded)
			continue
		}
		p.make(o)
		b.Made++
	}
}

// waitsFirst reports whether an occurrence waits that comes before a range. In a pause none does: its run is
// made once that is over.
func (p backfills) waitsFirst() bool { return len(p.s.Waiting) > 0 && p.s.Phase == Active }
