package checker

import "github.com/ddq-io/ddq/bench/ledger/verdict"

// The rules of ordering keys, whose tasks are held one at a time and in order of their
// due times.

// orders checks the tasks of every ordering key.
func orders(ev *evidence) {
	type line struct{ topic, key string }
	byKey := map[line][]*task{}
	for _, s := range ev.stories {
		if key := s.orderingKey(); key != "" {
			byKey[line{s.topic, key}] = append(byKey[line{s.topic, key}], ev.task(s))
		}
	}
	for _, tasks := range byKey {
		b := &books{}
		for _, t := range tasks {
			b.enter(t)
		}
		b.atMost(1, "of its ordering key")
		inOrder(tasks)
	}
}

// inOrder complains when a task was delivered for the first time after a later one of its
// key, though it was stored before that one can have been held. Tasks that were moved, or
// may have lived twice, prove nothing. A worker that was paused may tell of the first attempt
// after another one had the second.
func inOrder(tasks []*task) {
	for _, t := range tasks {
		if t.firstDelivery() == nil || t.creations() > 1 || len(t.moves) > 0 {
			continue
		}
		for _, other := range tasks {
			later := other.firstDelivery()
			if other == t || later == nil || later.Mono >= t.deliveries[0].Mono || len(other.moves) > 0 {
				continue
			}
			held := other.granted(later)
			due, to := t.storedDue()
			its, known := other.storedDue() // one that was given back has another by now, and goes first all the same
			if known != never && to < held && due < its {
				t.offend(verdict.Overtaken, "due %d ms before %s of its ordering key, and delivered after it", its-due, other.id)
				break
			}
		}
	}
}
