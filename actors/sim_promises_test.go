package actors_test

import (
	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/store"
)

// walkEnds looks at the end of a run whether what is promised of it was kept, and whether its
// tallies say so.
func (s *sim) walkEnds(run *simRun, was *audience.Walk, c *store.Commit) {
	run.over = true
	if len(c.Adds)+len(c.Removes) > 0 {
		s.broken("%s ends, and makes or takes back tasks", run.Run)
	}
	if _, noted := run.began[0]; !noted {
		return // it was cancelled before it began, and is not remembered
	}
	past := run.past
	if past == nil {
		s.broken("forgotten: %s has ended, and the audience does not know it", run.Run)
		return
	}
	ended := past.Walk.Ended()
	switch {
	case past.Verdicts != run.verdicts || past.Made() != int64(len(run.made)):
		s.broken("miscounted: %s counts %v, and %v came of its recipients, with %d tasks", run.Run, past.Verdicts, run.verdicts, len(run.made))
	case past.Tracked && ended != past.Made():
		s.broken("miscounted: of %d tasks of %s %d have ended, it says", past.Made(), run.Run, ended)
	case past.Undo:
		s.leftBehind(run)
	case !past.Cancelled:
		s.promised(run)
	}
	for _, to := range s.audience.ids {
		if id := run.made[to]; id != "" && past.Tracked {
			if state, live := s.isLive(id); live {
				s.broken("untimely: %s has ended, and the task of %s is %s", run.Run, to, state)
			}
		}
	}
}

// promised looks whether each got what is promised, wherever the walk was when: who was a recipient
// all the time and wanted it all the time has one task, who wanted it at no time has none.
func (s *sim) promised(run *simRun) {
	for _, id := range s.audience.ids {
		always, ever := s.wanted(run, id)
		switch got := run.made[id] != ""; {
		case always && !got:
			s.broken("left out: %s was a recipient of %s all the time, and got no task", id, run.Run)
		case !ever && got:
			s.broken("uninvited: %s got a task of %s, and was at no time to get one", id, run.Run)
		}
	}
}

// wanted reports whether somebody was to get a task of a run all the time since it began, and
// whether at any time.
func (s *sim) wanted(run *simRun, id string) (always, ever bool) {
	n, at := simLocate(id)
	moment := run.began[n]
	began := s.audience.at(id, moment)
	if began.joined == 0 {
		return false, false
	}
	window := run.Window
	if run.past.Window == 0 {
		window = 0 // as there were few
	}
	due := run.begin(began.as.Zone) + simPlace(at+uint64(run.past.Turn), window, run.Grain)
	states := []simState{began}
	for _, st := range s.audience.people[id] {
		if st.since > moment {
			states = append(states, st)
		}
	}
	always = true
	for _, st := range states {
		_, gets := run.judge(began.as.Zone, &st.as, due)
		wants := st.joined == began.joined && gets != 0
		always, ever = always && wants, ever || wants
	}
	return always, ever
}

// auditAudience looks at the end whether runs are over, and left nothing in any shard.
func (s *sim) auditAudience() {
	if s.audience == nil {
		return
	}
	for _, run := range s.audience.begun {
		if !run.over {
			s.broken("stranded: %s has not ended", run.Run)
		}
	}
	if s.audience.dropped || s.audience.ended {
		s.auditDissolved()
	} else {
		s.auditRecipients()
	}
	for _, sh := range s.shardsOf(simTopic) {
		for _, kind := range []byte{store.CellWalk, audience.PartKind} {
			cells, _, err := s.on(sh).CellPage(simContext, sh, kind, "", 100)
			if err != nil {
				panic(err) // memstore fails only when it is closed
			}
			for _, c := range cells {
				s.broken("left behind: %v has the cell %s%s", sh, string(kind), c.ID.Key())
			}
		}
	}
}

// auditRecipients looks whether the audience has those who are recipients, and no runs.
func (s *sim) auditRecipients() {
	for n := range s.audience.Shards {
		dir, err := s.access().Directory(simContext, s.audience.Audience, n)
		if err != nil {
			panic(err) // memstore fails only when it is closed
		}
		if len(dir.Runs) > 0 {
			s.broken("left behind: the audience has the runs %+v", dir.Runs)
		}
		s.compareAudience(s.audience.Shard(n))
	}
}
