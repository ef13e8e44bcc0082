package checker

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// interval is a part of the time in which a task was held, on one clock.
type interval struct {
	*task
	attempt  int
	from, to int64
}

// books are the holds of some tasks, and when the store says that they began.
type books struct {
	inHand []interval // mono
	booked []interval // the store's milliseconds
	most   int        // of those of a namespace
}

// enter adds the holds of one task.
func (b *books) enter(t *task) {
	for _, d := range t.deliveries {
		if !d.loose {
			b.inHand = append(b.inHand, interval{t, d.Attempt, d.Mono, t.handedBack(d)})
		}
	}
	if t.found == nil {
		return
	}
	for _, a := range t.found.History {
		if a.Started == 0 || t.undone(a.Started) {
			continue
		}
		over := a.Started + t.heldFor(&a)
		if a.Ended != 0 {
			over = min(over, a.Ended)
		}
		b.booked = append(b.booked, interval{t, a.Number, a.Started, over})
	}
}

// heldFor is how long an attempt was held at least, ms, unless it ended before: 0 when
// nobody received it.
func (s *story) heldFor(a *ledger.Attempt) int64 {
	least := int64(0)
	for _, d := range s.deliveries {
		if d.Attempt == a.Number && d.Client == a.Worker && (least == 0 || d.HoldMS < least) {
			least = d.HoldMS
		}
	}
	return least
}

// atMost complains when more than a number of holds were alive at one moment.
func (b *books) atMost(most int, of string) {
	if most == 0 {
		return
	}
	together(b.inHand, most, 0, "in the hands of workers", of)
	together(b.booked, most, 1, "by the store's books", of)
}

// together looks for a moment at which more than most of some intervals overlap, each of
// them begun shorter by slack. One offence is enough.
func together(all []interval, most int, slack int64, where, of string) {
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	var alive []interval
	for _, x := range all {
		x.from += slack
		if x.to <= x.from {
			continue
		}
		alive = slices.DeleteFunc(alive, func(a interval) bool { return a.to <= x.from })
		if alive = append(alive, x); len(alive) > most {
			x.offend(verdict.Crowded, "attempt %d made %d tasks %s that were held at once %s, of %d; another is %s", x.attempt, len(alive), of, where, most, alive[0].id)
			return
		}
	}
}
