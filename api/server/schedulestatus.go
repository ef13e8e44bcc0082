package server

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

func durationWire(d time.Duration) *durationpb.Duration { return durationpb.New(d) }

func statusWire(s *schedules.Status) *ddqv1.ScheduleStatus {
	w := &ddqv1.ScheduleStatus{
		State: wire.Enum(phaseToWire[:], s.Phase), PausedBy: wire.Text(s.PausedBy), NextTime: wire.StampOrNil(s.Next), LastTime: wire.StampOrNil(s.Last),
		Waiting: int32(len(s.Waiting)), Failures: int32(s.Failures), Totals: totalsWire(s.Schedule),
	}
	for i := range s.Open {
		r := &s.Open[i]
		w.OpenRuns = append(w.OpenRuns, &ddqv1.ScheduleRun{
			OccurrenceTime: wire.StampOrNil(r.At), Due: wire.StampOrNil(r.Due), Id: s.RunID(*r), Origin: wire.Enum(originToWire[:], r.Origin),
		})
	}
	for i := range s.History {
		w.History = append(w.History, pastWire(s.Schedule, &s.History[i]))
	}
	for _, b := range s.Backfills {
		w.Backfills = append(w.Backfills, &ddqv1.Backfill{
			Id: wire.Text(b.ID), From: wire.StampOrNil(b.From), To: wire.StampOrNil(b.To), Overlap: wire.Enum(overlapToWire[:], b.Overlap), Total: b.Total, Made: b.Made,
		})
	}
	return w
}

// pastWire is a run that ended, or skips.
func pastWire(s *schedule.Schedule, h *schedule.Past) *ddqv1.ScheduleRun {
	w := &ddqv1.ScheduleRun{
		OccurrenceTime: wire.StampOrNil(h.At), Origin: wire.Enum(originToWire[:], h.Origin),
		Outcome: wire.Enum(runOutcomeToWire[:], h.Outcome), Skipped: wire.Enum(skipToWire[:], h.Reason), Count: h.Count,
	}
	if h.Reason != 0 {
		return w
	}
	w.Id, w.Due = s.PastID(h), wire.StampOrNil(h.Due)
	if h.Started != 0 {
		w.LateMs, w.DurationMs = int64(max(h.Started-h.Due, 0)), int64(max(h.Ended-h.Started, 0))
	}
	return w
}

func totalsWire(s *schedule.Schedule) *ddqv1.ScheduleTotals {
	w := &ddqv1.ScheduleTotals{Made: s.Made, Done: s.Totals[schedule.Done], Failed: s.Totals[schedule.Failed], Removed: s.Totals[schedule.Removed]}
	for reason, n := range s.Skipped {
		if n > 0 {
			w.Skipped = append(w.Skipped, &ddqv1.SkipTotal{Reason: wire.Enum(skipToWire[:], reason), Count: n})
		}
	}
	slices.SortFunc(w.Skipped, func(a, b *ddqv1.SkipTotal) int { return int(a.Reason - b.Reason) })
	return w
}

// previewRangeOf converts what a preview is to name.
func previewRangeOf(r *ddqv1.PreviewScheduleRequest) (out schedules.PreviewRange, err error) {
	out.Count = int(r.GetCount())
	var e *problem.Error
	if out.From, out.To, e = spanOf(r); e != nil {
		return out, e
	}
	return out, nil
}

// spanOf reads the ends of a span, 0 for one that is not given.
func spanOf(r interface {
	GetFrom() *timestamppb.Timestamp
	GetTo() *timestamppb.Timestamp
}) (from, to store.Millis, e *problem.Error) {
	if r.GetFrom() != nil {
		if from, e = wire.Instant(r.GetFrom(), "from"); e != nil {
			return from, to, e
		}
	}
	if r.GetTo() != nil {
		to, e = wire.Instant(r.GetTo(), "to")
	}
	return from, to, e
}

func previewWire(topic string, p *schedules.Preview) *ddqv1.PreviewScheduleResponse {
	out := &ddqv1.PreviewScheduleResponse{Topic: topic, Warnings: warningsWire(p.Warnings)}
	out.Occurrences = make([]*ddqv1.PreviewedOccurrence, len(p.Occurrences))
	for i, o := range p.Occurrences {
		out.Occurrences[i] = &ddqv1.PreviewedOccurrence{
			OccurrenceTime: wire.StampOrNil(o.At), Due: wire.StampOrNil(o.Due), LocalTime: o.Local.Format(localTime), Skipped: wire.Enum(skipToWire[:], o.Skipped),
		}
	}
	if p.Audience != nil {
		out.Audience = audiencePreviewWire(p.Audience)
	}
	return out
}

// localTime has the offset also where that is 0.
const localTime = "2006-01-02T15:04:05.999-07:00"
