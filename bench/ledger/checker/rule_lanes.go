package checker

import (
	"cmp"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/verdict"
)

// The rules of priorities and fairness keys. They say what is next among tasks that wait
// at one node, so there is something to check where a backlog waited as a whole, and
// stayed at that node until it was gone: see Ordered. When an attempt began is the store's word,
// to the millisecond; what began within one is taken to have begun in any order.

// turn is the first attempt of a task of a backlog.
type turn struct {
	*task
	started int64
	enqueue *ledger.Event
}

// lanes checks every backlog.
func lanes(ev *evidence) {
	for _, e := range ev.backlogs {
		t := ev.topics[e.Topic]
		if t == nil || t.Ageing < 1 {
			continue
		}
		turns := turnsOf(ev, e)
		for i := range turns {
			if !inTurn(turns, i, t.Ageing, e.Cap) {
				break
			}
		}
	}
}

// turnsOf are the tasks of a backlog in the order in which they were held.
func turnsOf(ev *evidence, e *ledger.Event) (turns []turn) {
	for _, s := range ev.stories {
		if s.topic != e.Topic || s.found == nil || len(s.found.History) == 0 || s.creations() != 1 {
			continue
		}
		first := s.found.History[0]
		for _, a := range s.found.History {
			if a.Started < first.Started {
				first = a
			}
		}
		turns = append(turns, turn{ev.task(s), first.Started, s.enqueues[0].Event})
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.started, b.started), cmp.Compare(a.id, b.id)) })
	return turns
}

// inTurn reports whether no more tasks went before the i-th than may: of lower priorities
// one of so many deliveries, which go to the task that waits for longest, and of other
// keys of its own those of the turns until its own. So many as are handed out at a time
// may pass each other besides.
func inTurn(turns []turn, i, ageing, apart int) bool {
	x := turns[i]
	before, lower, own, others := 0, 0, 1, map[string]int{}
	weights := map[string]int{}
	for _, y := range turns[:i] {
		if y.started == x.started {
			break
		}
		before++
		switch {
		case y.enqueue.Priority < x.enqueue.Priority:
			lower++
		case y.enqueue.Priority > x.enqueue.Priority:
		case y.enqueue.Lane == x.enqueue.Lane:
			own++
		default:
			others[y.enqueue.Lane]++
			weights[y.enqueue.Lane] = max(1, y.enqueue.Weight)
		}
	}
	aged := before/ageing + 1 + apart
	if lower > aged {
		x.offend(verdict.Overtaken, "of priority %d, and %d tasks of lower ones went before it, of %d; it may be %d", x.enqueue.Priority, lower, before, aged)
		return false
	}
	own += apart // those that went at the same time may have been before it
	weight := max(1, x.enqueue.Weight)
	for lane, n := range others {
		most := ((own+weight-1)/weight+1)*weights[lane] + aged
		if n > most {
			x.offend(verdict.Overtaken, "of fairness key %q, and %d tasks of %q went before it; it may be %d", x.enqueue.Lane, n, lane, most)
			return false
		}
	}
	return true
}
