package dispatch

import (
	"cmp"
	"iter"
	"slices"
)

// Load is how busy a subscription is.
type Load struct {
	Sub      int64
	InFlight int // tasks that were assigned and are not settled
	Credit   int
}

// Loads yields how busy the subscriptions are that are younger than one, the oldest first.
// Ids rise with every Subscribe.
func (t *Topic) Loads(after int64) iter.Seq[Load] {
	return func(yield func(Load) bool) {
		subs := t.core.subs
		from, found := slices.BinarySearchFunc(subs, after, func(s *subState, id int64) int { return cmp.Compare(s.ID, id) })
		if found {
			from++
		}
		for _, s := range subs[from:] {
			if !yield(Load{s.ID, s.InFlight, s.Credit}) {
				return
			}
		}
	}
}
