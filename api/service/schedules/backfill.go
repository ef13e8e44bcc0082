package schedules

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// Backfill asks for runs of occurrences that have been.
type Backfill struct {
	Topic, Name string // an empty topic: every topic is searched
	ID          string // the same again changes nothing; empty: a new one
	From, To    store.Millis
	Overlap     schedule.Overlap // BufferAll, also when 0, or Allow
}

// Backfilling is a backfill as it was accepted.
type Backfilling struct {
	Topic    string
	ID       string
	Total    int64 // occurrences
	Repeated bool  // it was asked for before
}

// Backfill makes runs of the occurrences of a range once more, both ends included, as they
// become possible.
func (s *Schedules) Backfill(ctx context.Context, b Backfill) (Backfilling, error) {
	if err := b.check(); err != nil {
		return Backfilling{}, err
	}
	admission := s.tasks.Admit()
	defer admission.Leave()
	var started Backfilling
	at, _, err := s.change(ctx, b.Topic, b.Name, func(at *located) (schedule.Event, *problem.Error) {
		started = Backfilling{ID: b.ID, Repeated: slices.Contains(at.Requests, b.ID)}
		if started.Repeated {
			return nil, nil
		}
		if err := s.admit(ctx, admission, at); err != nil {
			return nil, err
		}
		e, err := b.event(at, s.node.Clocks().NowAt(at.shard))
		started.Total = e.Total
		return e, err
	})
	if err != nil {
		return Backfilling{}, err
	}
	started.Topic = at.topic.Name
	return started, nil
}

func (b *Backfill) check() *problem.Error {
	if err := checkNote("id", b.ID, maxName); err != nil {
		return err
	}
	if b.ID == "" {
		b.ID = uuid.NewString()
	}
	if b.Overlap == 0 {
		b.Overlap = schedule.BufferAll
	}
	switch {
	case b.Overlap > schedule.Allow:
		return problem.BadField("overlap", "BAD_ENUM", "overlap has no value %d", b.Overlap)
	case b.Overlap != schedule.BufferAll && b.Overlap != schedule.Allow:
		return problem.BadField("overlap", "BAD_POLICY", "the overlap of a backfill is BUFFER_ALL or ALLOW")
	case b.From == 0:
		return problem.BadField("from", "BAD_TIME", "from is required")
	case b.To == 0:
		return problem.BadField("to", "BAD_TIME", "to is required")
	case b.From > b.To:
		return problem.BadField("to", "BAD_TIME", "to is before from")
	}
	return nil
}

// event is the backfill of a schedule as it stands.
func (b *Backfill) event(at *located, now store.Millis) (schedule.StartBackfill, *problem.Error) {
	e := schedule.StartBackfill{ID: b.ID, From: b.From, To: min(b.To, now), Overlap: b.Overlap}
	switch {
	case at.table.FromEnd():
		return e, problem.BadField("name", "BAD_POLICY", "an interval from the END of a run has no occurrences that were missed")
	case at.Untracked && b.Overlap != schedule.Allow:
		return e, problem.BadField("overlap", "BAD_POLICY", "BUFFER_ALL needs runs that are tracked")
	case len(at.Backfills) >= schedule.MaxBackfills:
		return e, &problem.Error{Kind: problem.Exhausted, Reason: "TOO_MANY_BACKFILLS", Field: "name",
			Message: fmt.Sprintf("schedule %q has %d backfills; at most %d are allowed", at.Name, len(at.Backfills), schedule.MaxBackfills)}
	}
	total := schedule.Count(at.table, e.From, e.To, schedule.MaxBackfill)
	if total > schedule.MaxBackfill {
		return e, problem.BadField("to", "BACKFILL_TOO_LARGE", "the range has more than %d occurrences", schedule.MaxBackfill)
	}
	e.Total = int64(total)
	return e, nil
}

// CancelBackfill ends a backfill, and returns the topic. Runs that it made go on.
func (s *Schedules) CancelBackfill(ctx context.Context, topic, name, id string) (foundIn string, err error) {
	at, _, e := s.change(ctx, topic, name, func(at *located) (schedule.Event, *problem.Error) {
		if !slices.ContainsFunc(at.Backfills, func(b schedule.Backfill) bool { return b.ID == id }) {
			return nil, &problem.Error{Kind: problem.NotFound, Reason: "NO_BACKFILL", Field: "id", Message: fmt.Sprintf("schedule %q has no backfill %q", name, id)}
		}
		return schedule.CancelBackfill{ID: id}, nil
	})
	if e != nil {
		return "", e
	}
	return at.topic.Name, nil
}
