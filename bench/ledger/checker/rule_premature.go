package checker

import "github.com/ddq-io/ddq/bench/ledger/verdict"

// premature: nobody has a run before its time.
func premature(s *schedule) {
	for _, run := range s.runs {
		t := s.task(run)
		for _, d := range run.deliveries {
			if now := s.clock.Upper(heldSince(run), d.Event); now < run.occurrence {
				s.offend(verdict.Premature, "a worker had the run of %s at least %d ms before", clockTime(run.occurrence), run.occurrence-now)
				return
			}
		}
		if t.found == nil {
			continue
		}
		for i := range t.found.History {
			if a := &t.found.History[i]; a.Started != 0 && a.Started < run.occurrence && !s.undone(a.Started) {
				s.offend(verdict.Premature, "the run of %s began %d ms before, by the store's books", clockTime(run.occurrence), run.occurrence-a.Started)
				return
			}
		}
	}
}
