package audiences

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Run is a run of an audience: one that is open, or one of the last that have ended.
type Run struct {
	audience.PastRun              // Ended is 0 while it is open
	Lost             bool         // its topic is gone, and its walk with it: it never ends
	Next             store.Millis // place of those whose tasks are made next; 0: none are
	Behind           store.Millis // how late that place is
}

// Runs returns the runs of an audience: those that are open, the earliest first, and the last
// that have ended, the latest first.
func (s *Audiences) Runs(ctx context.Context, name string, now store.Millis) ([]Run, error) {
	a, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	noted, err := s.noted(ctx, a)
	if err != nil {
		return nil, err
	}
	var runs []Run
	for _, n := range noted {
		w, err := s.walk(ctx, &n)
		if err != nil {
			return nil, err
		}
		runs = append(runs, w.run(a, &n, now))
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.At, b.At) })
	past, err := s.PastRuns(ctx, a)
	if err != nil {
		return nil, problem.AsError(err)
	}
	for i := range past {
		// One that ended since it was found to be noted is among both.
		runs = slices.DeleteFunc(runs, func(r Run) bool { return r.Walk.Run == past[i].Run })
		runs = append(runs, Run{PastRun: past[i]})
	}
	return runs, nil
}

// Run returns a run by its id.
func (s *Audiences) Run(ctx context.Context, name, id string, now store.Millis) (Run, error) {
	runs, err := s.Runs(ctx, name, now)
	if err != nil {
		return Run{}, err
	}
	for _, r := range runs {
		if r.Walk.Run == id {
			return r, nil
		}
	}
	return Run{}, noRun(name, id)
}

// noted are the runs that are open, as any shard has noted them, the earliest first.
func (s *Audiences) noted(ctx context.Context, a *audience.Audience) ([]audience.Run, error) {
	status, err := s.status(ctx, a)
	return status.open, err
}

// openWalk is the walk of a run that is open, and where it was read; without a walk, the topic
// is gone.
type openWalk struct {
	*audience.Walk
	topic *store.Topic
	shard store.Shard
	cell  store.Cell
	from  uint64 // the server that it was read from, see store.Commit
}

// walk reads the walk of a run that was noted before: the topic is read after that, so that
// it has the shard of the walk.
func (s *Audiences) walk(ctx context.Context, n *audience.Run) (w openWalk, err error) {
	if w.topic, err = s.outside.Topic(ctx, n.Topic); err != nil || w.topic == nil {
		return w, problem.AsError(err)
	}
	for _, shard := range place.Candidates(w.topic, n.ID) {
		from := s.store.Server(ctx, shard)
		cells, err := s.store.Cells(ctx, shard, []store.CellID{audience.WalkID(n.ID)})
		if err != nil {
			return w, problem.AsError(err)
		}
		if cells[0].Version == 0 {
			continue
		}
		w.shard, w.cell, w.from = shard, cells[0], from
		w.Walk, err = audience.DecodeWalk(w.cell.Body)
		return w, problem.AsError(err)
	}
	return w, nil
}

func (w *openWalk) run(a *audience.Audience, n *audience.Run, now store.Millis) Run {
	r := Run{PastRun: audience.PastRun{Topic: n.Topic}}
	if w.Walk == nil {
		r.Lost = true
		r.Order = audience.Order{Run: n.ID, Schedule: n.Schedule, Audience: a.Name}
		return r
	}
	r.Walk = *w.Walk
	r.Paths, r.Starts = nil, nil
	r.Next, _ = w.NextPlace()
	r.Behind = w.Behind(now)
	return r
}

// cancelTries is how often a run may go on while a call is at it.
const cancelTries = 50

// CancelRun ends a run: when it returns, no more tasks are made. With undo the tasks that no
// worker has yet are taken back, soon after. Repeated it changes nothing.
func (s *Audiences) CancelRun(ctx context.Context, name, id string, undo bool, now store.Millis) (Run, error) {
	a, err := s.find(ctx, name)
	if err != nil {
		return Run{}, err
	}
	for range cancelTries {
		r, done, err := s.tryCancel(ctx, a, id, undo, now)
		if done || err != nil {
			return r, err
		}
	}
	return Run{}, contended()
}

func (s *Audiences) tryCancel(ctx context.Context, a *audience.Audience, id string, undo bool, now store.Millis) (r Run, done bool, err error) {
	noted, err := s.noted(ctx, a)
	if err != nil {
		return r, false, err
	}
	i := slices.IndexFunc(noted, func(n audience.Run) bool { return n.ID == id })
	if i < 0 {
		r, err = s.ended(ctx, a, id)
		return r, true, err
	}
	w, err := s.walk(ctx, &noted[i])
	switch {
	case err != nil:
		return r, false, err
	case w.Walk == nil:
		return s.forget(ctx, a, &noted[i], now)
	}
	w.Cancel(undo)
	if done, err = s.put(ctx, &w, now); done && err == nil {
		return w.run(a, &noted[i], now), true, nil
	}
	return r, false, err
}

// put stores a walk that was cancelled, unless it has gone on meanwhile.
func (s *Audiences) put(ctx context.Context, w *openWalk, now store.Millis) (bool, error) {
	c := store.Cell{ID: w.cell.ID, Wake: now, Body: w.Body()}
	if w.Phase == audience.Waiting {
		c.Wake = w.cell.Wake // it was cancelled before
	}
	_, results, err := s.store.Commit(ctx, w.shard.For(w.topic.Life), nil, []store.Commit{{
		Puts: []store.Put{{Cell: c, If: w.cell.Version}},
		Send: []store.Parcel{{To: c.ID, Body: []byte("look")}}, // the owner looks, also when nobody tells it
		From: w.from,
	}})
	if errors.Is(err, store.ErrAnotherServer) {
		return false, nil
	}
	if err != nil || results[0].Status != store.OK {
		return false, problem.AsError(err)
	}
	s.outside.Tell(ctx, w.topic.Name, w.shard.N)
	return true, nil
}

// ended is a run that is not open any more. One that was not cancelled is an error.
func (s *Audiences) ended(ctx context.Context, a *audience.Audience, id string) (Run, error) {
	past, err := s.PastRuns(ctx, a)
	if err != nil {
		return Run{}, problem.AsError(err)
	}
	for _, p := range past {
		switch {
		case p.Run != id:
		case p.Cancelled:
			return Run{PastRun: p}, nil
		default:
			return Run{}, runOver(id)
		}
	}
	return Run{}, noRun(a.Name, id)
}

// forget has an audience forget a run whose walk is gone with its topic.
func (s *Audiences) forget(ctx context.Context, a *audience.Audience, n *audience.Run, now store.Millis) (r Run, done bool, err error) {
	past := audience.PastRun{Topic: n.Topic, Ended: now, Walk: audience.Walk{
		Order: audience.Order{Run: n.ID, Schedule: n.Schedule, Audience: a.Name, Quiet: audience.Defer},
		Phase: audience.Over, Cancelled: true,
	}}
	err = each(ctx, all(a), func(ctx context.Context, n int) error { return asProblem(a.Name, s.EndRun(ctx, a, n, past)) })
	return Run{PastRun: past}, true, err
}

// OpenRun is a run that has not ended.
type OpenRun struct{ Audience, Run string }

// walksPage is how many walks are read at a time: a topic has few.
const walksPage = 100

// In returns the runs whose walks are in some shards.
func (s *Audiences) In(ctx context.Context, shards []store.Shard) (runs []OpenRun, err error) {
	if s == nil {
		return nil, nil
	}
	for _, shard := range shards {
		for cursor, more := "", true; more; more = cursor != "" {
			var cells []store.Cell
			if cells, cursor, err = s.store.CellPage(ctx, shard, store.CellWalk, cursor, walksPage); err != nil {
				return nil, problem.AsError(err)
			}
			for _, c := range cells {
				if w, err := audience.DecodeWalk(c.Body); err == nil { // one that cannot be read is lost
					runs = append(runs, OpenRun{w.Audience, w.Run})
				}
			}
		}
	}
	return runs, nil
}

// Lose cancels runs whose walks are gone with their topic. Repeated it changes nothing.
func (s *Audiences) Lose(ctx context.Context, runs []OpenRun, now store.Millis) error {
	for _, r := range runs {
		_, err := s.CancelRun(ctx, r.Audience, r.Run, false, now)
		if e := problem.FromStore(err); e != nil && e.Kind != problem.NotFound && e.Reason != "RUN_OVER" {
			return e
		}
	}
	return nil
}

// forgetLost has an audience forget the runs that are lost, and returns how many are open.
func (s *Audiences) forgetLost(ctx context.Context, a *audience.Audience, now store.Millis) (open int, err error) {
	noted, err := s.noted(ctx, a)
	if err != nil {
		return 0, err
	}
	for i := range noted {
		w, err := s.walk(ctx, &noted[i])
		if err != nil {
			return 0, err
		}
		if w.Walk != nil {
			open++
			continue
		}
		if _, _, err := s.forget(ctx, a, &noted[i], now); err != nil {
			return 0, err
		}
	}
	return open, nil
}

func noRun(name, id string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_RUN", Field: "id", Message: fmt.Sprintf("audience %q has no run %q that is open or one of its last", name, id)}
}

func runOver(id string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "RUN_OVER", Field: "id", Message: fmt.Sprintf("run %q has ended", id)}
}
