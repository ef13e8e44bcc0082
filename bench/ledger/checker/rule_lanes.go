package checker

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/turns"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// The rules of priorities and fairness keys. They say what is next among tasks that wait
// at one node, so there is something to check where a backlog waited as a whole, and
// stayed at that node until it was gone: see Ordered. When an attempt began is the store's word,
// to the millisecond; what began within one is taken to have begun in any order.

// lanes checks every backlog.
func lanes(ev *evidence) {
	for _, e := range ev.backlogs {
		t := ev.topics[e.Topic]
		if t == nil || t.Ageing < 1 {
			continue
		}
		stories, order := turnsOf(ev, e)
		for i := range order {
			if why := turns.Overtaken(order, i, t.Ageing, e.Cap); why != "" {
				ev.task(stories[i]).offend(verdict.Overtaken, "%s", why)
				break
			}
		}
	}
}

// turnsOf are the tasks of a backlog in the order in which they were held.
func turnsOf(ev *evidence, e *ledger.Event) (stories []*story, order []turns.Turn) {
	started := map[*story]int64{}
	for _, s := range ev.stories {
		if s.topic != e.Topic || s.found == nil || len(s.found.History) == 0 || s.creations() != 1 {
			continue
		}
		first := slices.MinFunc(s.found.History, func(a, b ledger.Attempt) int { return cmp.Compare(a.Started, b.Started) })
		stories, started[s] = append(stories, s), first.Started
	}
	slices.SortFunc(stories, func(a, b *story) int { return cmp.Or(cmp.Compare(started[a], started[b]), cmp.Compare(a.id, b.id)) })
	for _, s := range stories {
		o := s.enqueues[0]
		order = append(order, turns.Turn{Started: started[s], Priority: o.Priority, Lane: o.Lane, Weight: o.Weight})
	}
	return stories, order
}
