package schedules

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// maxSpreadFrom is from how many recipients on they are spread at most.
const maxSpreadFrom = 1_000_000

// CheckTarget checks the bounds of what is said of an audience.
func CheckTarget(a *schedule.Target) *problem.Error {
	switch {
	case a.Window > audience.MaxWindow:
		return outOfRange("audience.window_ms", 0, audience.MaxWindow.Milliseconds())
	case a.Grain > a.Window:
		return outOfRange("audience.grain_ms", 0, a.Window.Milliseconds())
	case a.SpreadFrom < 0 || a.SpreadFrom > maxSpreadFrom:
		return outOfRange("audience.spread_from", 0, maxSpreadFrom)
	}
	return nil
}

// checkAudience checks what a schedule says of its audience.
func (n *Definition) checkAudience() *problem.Error {
	switch {
	case n.Audience == nil:
		return nil
	case n.Template.Slack > 0:
		return problem.BadField("task.slack", "BAD_POLICY", "task.slack is not for audiences: audience.window_ms spreads their tasks")
	}
	return CheckTarget(n.Audience)
}

// OrderOf is what a run asks for that begins at a moment. Local is one at the time of each
// recipient.
func OrderOf(a *schedule.Target, at store.Millis, local bool) audience.Order {
	return audience.Order{
		At: at, Occurrence: at, Audience: a.Name, Kind: a.Kind, Quiet: audience.QuietPolicy(a.Quiet),
		Spread: audience.Spread{Window: a.Window, Grain: a.Grain}, SpreadFrom: a.SpreadFrom, Rotate: a.Rotate, Local: local, Tracked: !a.Untracked,
	}
}

// previewAudience is what the first of some occurrences would do that is not skipped.
func (s *Schedules) previewAudience(ctx context.Context, at *located, list []Previewed) (*audience.Preview, error) {
	i := slices.IndexFunc(list, func(o Previewed) bool { return o.Skipped == 0 })
	if at.Audience == nil || i < 0 {
		return nil, nil
	}
	order := OrderOf(at.Audience, cmp.Or(list[i].Due, list[i].At), local(&at.Spec))
	order.Occurrence = list[i].At
	order.Run, order.Schedule = at.ID(schedule.Occurrence{At: list[i].At, Origin: schedule.ByTimetable}), at.Name
	if at.Life == 0 {
		order.Rotate = false // by what is known once the schedule exists
	}
	p, err := s.audiences.Preview(ctx, order)
	return &p, err
}

// local reports whether occurrences are at the time of each recipient.
func local(s *schedule.Spec) bool { return s.Timetable.Zone == timetable.Recipient }

// defaultOverlap is SKIP, but for runs at the time of each recipient: they last longer than a
// day, and each second one of a daily schedule would be skipped.
func (n *Definition) defaultOverlap() schedule.Overlap {
	if local(&n.Spec) {
		return schedule.Allow
	}
	return schedule.Skip
}

// checkLocal refuses what has no meaning where the time is that of each recipient.
func (n *Definition) checkLocal() *problem.Error {
	if !local(&n.Spec) {
		return nil
	}
	if n.Audience == nil {
		return problem.BadField("timetable.zone", "BAD_POLICY", "the zone of recipients is for schedules with an audience")
	}
	if n.Jitter > 0 {
		return problem.BadField("timetable.jitter_ms", "BAD_POLICY", "jitter is not for the time of each recipient: audience.window_ms spreads their tasks")
	}
	for i, e := range n.Timetable.Entries {
		if e.Every > 0 {
			return problem.BadField(fmt.Sprintf("timetable.entries[%d].every", i), "BAD_POLICY", "an interval is the same instant for all, and has no time of each recipient")
		}
	}
	return nil
}

// checkLocalRuns refuses runs of which more would be open at a time than an audience allows.
func checkLocalRuns(table *timetable.Timetable, spec *schedule.Spec, now store.Millis) *problem.Error {
	if !local(spec) || spec.Audience == nil {
		return nil
	}
	lasts := timetable.Spread + spec.Audience.Window
	if least := lasts / (audience.MaxRuns - 1); 0 < table.Distance(now.Time()) && table.Distance(now.Time()) < least {
		return problem.BadField("timetable.entries", "BAD_POLICY", "runs at the time of each recipient last %v, and %d may be open: %v must be between them", lasts, audience.MaxRuns, least)
	}
	return nil
}
