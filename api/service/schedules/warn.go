package schedules

import (
	"cmp"
	"context"

	"github.com/ddq-io/ddq/actors/forecast"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// warnings says in which second of the next runs of a schedule too much is due. Hurried:
// nobody has asked for it.
func (s *Schedules) warnings(ctx context.Context, at *located, hurried bool) ([]forecast.Collision, *problem.Error) {
	if at.topic.Name == "" { // there is none yet, and nothing in it
		return nil, nil
	}
	m := forecast.Meeting{Topic: at.topic, Schedule: at.Schedule, Wake: at.cell.Wake, Due: func() (due []store.Millis) {
		for _, o := range s.preview(ctx, at, PreviewRange{Count: forecast.MeetingRuns}) {
			if o.Skipped == 0 {
				due = append(due, cmp.Or(o.Due, o.At))
			}
		}
		return due
	}}
	c, err := s.forecasts.Collision(ctx, &m, hurried)
	if c == nil || err != nil {
		return nil, err
	}
	return []forecast.Collision{*c}, nil
}

// put is the answer to a put that changed something. That there is no warning is no reason
// to fail it.
func (s *Schedules) put(ctx context.Context, after *located, outcome Outcome) Put {
	put := Put{Version: versionOf(after.Schedule), Outcome: outcome, Next: s.status(ctx, after).Next}
	warnings, err := s.warnings(ctx, after, true)
	if err != nil {
		s.node.Log().Debug("schedule put without a look at what else is due", "topic", after.topic.Name, "schedule", after.Name, "err", err)
	}
	put.Warnings = warnings
	return put
}
