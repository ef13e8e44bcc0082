package actors_test

import (
	"math/big"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// simRun is a run of the audience, and what was committed of it. Each commit of its walk is judged
// by what the recipients were when the run began and when the walk read them: who was one all the
// time and wants it gets a task, at its place, and nobody else does.
type simRun struct {
	audience.Order
	began    map[int]int       // shard of the audience -> moment
	made     map[string]string // recipient -> id of the task
	named    map[string]bool   // ids of tasks that were to be taken back
	verdicts [audience.Verdicts]int64
	stopped  bool // a user was told that it is cancelled
	over     bool
	past     *audience.PastRun // as it is remembered
}

// simMail is a task that a recipient is to get.
type simMail struct {
	to          simState
	due, occurs store.Millis
	made        bool
}

func (a *simAudience) noteRun(id string, shard int) {
	if r := a.runs[id]; r != nil {
		if _, known := r.began[shard]; !known {
			r.began[shard] = a.moment
		}
	}
}

// ordered writes down that a schedule makes a run.
func (s *sim) ordered(w *audience.Walk) {
	r := &simRun{Order: w.Order, began: make(map[int]int), made: make(map[string]string), named: make(map[string]bool)}
	s.audience.runs[w.Run] = r
	s.audience.begun = append(s.audience.begun, r)
}

// walksOf are the walks that commits change, before they do.
func (s *sim) walksOf(m *memstore.Store, sh store.Shard, commits []store.Commit) map[store.CellID]*audience.Walk {
	if s.audience == nil {
		return nil
	}
	var ids []store.CellID
	for i := range commits {
		for _, put := range commits[i].Puts {
			if put.ID.Kind() == store.CellWalk && put.If != 0 {
				ids = append(ids, put.ID)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	cells, err := m.Cells(simContext, sh, ids)
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	walks := make(map[store.CellID]*audience.Walk)
	for _, c := range cells {
		if c.Version > 0 {
			walks[c.ID] = s.walkIn(c)
		}
	}
	return walks
}

func (s *sim) walkIn(c store.Cell) *audience.Walk {
	w, err := audience.DecodeWalk(c.Body)
	if err != nil {
		panic(err)
	}
	return w
}

// begin is when the first place of those is who were in a zone when the run began: at once, or when
// their clocks show what the occurrence says, if that is later.
func (r *simRun) begin(zone string) store.Millis {
	if r.Local {
		return max(r.At, r.occurs(zone))
	}
	return r.At
}

// occurs is when the occurrence is for them. A local one is when the first clock on earth is there.
func (r *simRun) occurs(zone string) store.Millis {
	if r.Local {
		return r.Occurrence.Add(14*time.Hour - simZones[zone])
	}
	return r.Occurrence
}

// walked judges a commit that was made in a turn, of walks as they were.
func (s *sim) walked(turn simTurn, c *store.Commit, walks map[store.CellID]*audience.Walk) {
	for _, put := range c.Puts {
		was := walks[put.ID]
		if was == nil {
			continue
		}
		run := s.audience.runs[was.Run]
		switch {
		case len(put.Body) == 0:
			s.walkEnds(run, was, c)
		case was.Cancelled || s.walkIn(put.Cell).Cancelled:
			s.walksBack(run, s.walkIn(put.Cell), c)
		default:
			s.walksOn(turn, run, was, s.walkIn(put.Cell), c)
		}
	}
}

// walksOn judges the tasks that a step makes, by those that it is to make.
func (s *sim) walksOn(turn simTurn, run *simRun, was, next *audience.Walk, c *store.Commit) {
	if run.stopped && len(c.Adds) > 0 {
		s.broken("zombie: %s makes %d tasks, and was cancelled", run.Run, len(c.Adds))
	}
	want := s.mailsOf(turn, run, was, next)
	for _, t := range c.Adds {
		to := t.RunOf.Recipient
		mail := want[t.ID]
		switch {
		case run.made[to] != "":
			s.broken("doubled: %s gets a second task of %s", to, run.Run)
		case mail == nil:
			s.broken("uninvited: %s gets a task of %s", to, run.Run)
		case t.Due != mail.due || t.RunOf.Occurrence != mail.occurs || to != mail.to.as.ID || string(t.RunOf.RecipientData) != string(mail.to.as.Data):
			s.broken("misplaced: the task of %s in %s is %+v, due %v, and is to be due %v, for %+v", to, run.Run, t.RunOf, t.Due.Time(), mail.due.Time(), mail.to.as)
		default:
			mail.made = true
		}
		run.made[to] = t.ID
	}
	for _, id := range s.audience.ids {
		if mail := want[run.ID(id)]; mail != nil && !mail.made {
			s.broken("left out: %s is passed by in %s, and gets no task", id, run.Run)
		}
	}
}

// mailsOf are the tasks that a walk is to make of those whom a step passes, by their ids.
func (s *sim) mailsOf(turn simTurn, run *simRun, was, next *audience.Walk) map[string]*simMail {
	a, want := s.audience, make(map[string]*simMail)
	for _, id := range a.ids {
		n, at := simLocate(id)
		began := a.at(id, run.began[n])
		if began.joined == 0 || !passed(was, next, n, began.as.Zone, at+uint64(next.Turn)) {
			continue
		}
		read, known := a.reads[simRead{turn, n}]
		if !known {
			s.broken("blind: %s passes %s, and has not read who is there", run.Run, id)
		}
		now := a.at(id, read)
		if began.joined != now.joined {
			continue
		}
		zone := began.as.Zone
		verdict, due := run.judge(zone, &now.as, run.begin(zone)+simPlace(at+uint64(next.Turn), next.Window, run.Grain))
		run.verdicts[verdict]++
		if due != 0 {
			want[run.ID(id)] = &simMail{to: now, due: due, occurs: run.occurs(zone)}
		}
	}
	return want
}

// passed reports whether a step of a walk passes a position of a zone in a shard, counted from where the
// walk began.
func passed(was, next *audience.Walk, shard int, zone string, at uint64) bool {
	from, done := standsAt(was, shard, zone)
	to, end := standsAt(next, shard, zone)
	return !done && from <= at && (end || at < to)
}

// standsAt is how far a walk is with those of a zone in a shard. It is at the end of what it does not go
// through.
func standsAt(w *audience.Walk, shard int, zone string) (next uint64, done bool) {
	if len(w.Paths) == 0 {
		return 0, false
	}
	track := 0
	if w.Local {
		track = slices.IndexFunc(w.Starts, func(s audience.Start) bool { return slices.Contains(s.Zones, zone) })
	}
	if tracks := w.Paths[shard].Tracks; track >= 0 && track < len(tracks) {
		return uint64(tracks[track].Next), tracks[track].Done
	}
	return 0, true
}

// simPlace is how long after the begin of a run somebody's place is, in whole numbers of any size.
func simPlace(at uint64, window, grain time.Duration) store.Millis {
	place := new(big.Int).SetUint64(at)
	place.Mul(place, big.NewInt(window.Milliseconds()))
	place.Rsh(place, 64)
	ms := place.Int64()
	return store.Millis(ms - ms%max(1, grain.Milliseconds()))
}

// judge says what becomes of a recipient of a zone whose place is at a time; the task is due at 0
// when there is none.
func (r *simRun) judge(zone string, as *audience.Recipient, at store.Millis) (audience.Verdict, store.Millis) {
	minute := uint16((int64(at)/60_000 + int64(simZones[zone]/time.Minute)) % (24 * 60))
	quiet := as.Quiet.From <= minute && minute < as.Quiet.To && r.Quiet != audience.Ignore
	switch {
	case as.Disabled:
		return audience.Disabled, 0
	case r.Kind == "digest" && as.Off == 1, r.Kind == "news" && as.On == 0:
		return audience.OptedOut, 0
	case quiet && r.Quiet == audience.Skip:
		return audience.Silent, 0
	case quiet:
		return audience.Deferred, at - at%60_000 + store.Millis(as.Quiet.To-minute)*60_000
	}
	return audience.Taken, at
}

// walksBack judges a step of a walk that is cancelled: it makes nothing, and once it has taken back
// what it made nothing is left that no worker has.
func (s *sim) walksBack(run *simRun, next *audience.Walk, c *store.Commit) {
	if len(c.Adds) > 0 {
		s.broken("zombie: %s makes %d tasks, and is cancelled", run.Run, len(c.Adds))
	}
	for _, r := range c.Removes {
		run.named[r.ID] = true
	}
	if next.Undo && next.Phase != audience.Undoing {
		s.leftBehind(run)
	}
}

func (s *sim) leftBehind(run *simRun) {
	for _, to := range s.audience.ids {
		id := run.made[to]
		if id == "" || run.named[id] {
			continue
		}
		if state, _ := s.isLive(id); state.Pending() {
			s.broken("left behind: the task of %s in %s is %s, and the run was taken back", to, run.Run, state)
		}
	}
}

// remembered writes down how a run is remembered that has ended.
func (s *sim) remembered(c store.Cell) {
	past, err := audience.DecodePastRuns(c)
	if err != nil {
		s.broken("past runs cannot be read: %v", err)
	}
	for i := range past {
		if r := s.audience.runs[past[i].Run]; r != nil && r.past == nil {
			r.past = &past[i]
		}
	}
}
