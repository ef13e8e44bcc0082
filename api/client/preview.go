package client

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/forecast"
	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// PreviewRange says which occurrences a preview names.
type PreviewRange struct {
	From  time.Time // those after it; from now when zero
	To    time.Time // none after it; no bound when zero
	Count int       // at most so many: 1 to 1,000; 10 when 0
}

// Previewed is an occurrence to come.
type Previewed struct {
	Occurrence time.Time  `json:"occurrence_time"`
	Due        time.Time  `json:"due,omitempty"`     // later by the jitter; zero where that is not known before the schedule exists
	Local      string     `json:"local_time"`        // by the clock of the schedule's zone, such as 2030-03-31T03:00:00+02:00
	Skipped    SkipReason `json:"skipped,omitempty"` // why no run would be made of it
}

// MarshalJSON writes the form that `ddq schedule preview -o json` prints.
func (p Previewed) MarshalJSON() ([]byte, error) { return fields.Write(p) }

// UnmarshalJSON reads it.
func (p *Previewed) UnmarshalJSON(b []byte) error { return fields.Read(b, p) }

// Preview is what is to come of a schedule.
type Preview struct {
	Topic       string
	Occurrences []Previewed
	Warnings    []DueWarning // of its next ten runs from now on

	// Audience is what the first of the occurrences that is not skipped would do, of a
	// schedule that has one; else nil.
	Audience *AudiencePreview
}

// PreviewSchedule names occurrences to come of a schedule that need not exist, and refuses
// what PutSchedule would. Nothing is stored.
func (c *Schedules) PreviewSchedule(ctx context.Context, s Schedule, r PreviewRange) (Preview, error) {
	w, e := c.scheduleWire(&s)
	if e != nil {
		return Preview{}, e
	}
	return c.preview(ctx, &ddqv1.PreviewScheduleRequest{Of: &ddqv1.PreviewScheduleRequest_Schedule{Schedule: w}}, r)
}

// PreviewExisting names occurrences to come of a schedule. Every topic is searched when topic
// is empty.
func (c *Schedules) PreviewExisting(ctx context.Context, topic, name string, r PreviewRange) (Preview, error) {
	of := &ddqv1.PreviewScheduleRequest_Existing{Existing: &ddqv1.ScheduleName{Topic: topic, Name: name}}
	return c.preview(ctx, &ddqv1.PreviewScheduleRequest{Of: of}, r)
}

func (c *Schedules) preview(ctx context.Context, request *ddqv1.PreviewScheduleRequest, r PreviewRange) (p Preview, err error) {
	request.From, request.To, request.Count = wire.Stamp(r.From), wire.Stamp(r.To), wire.Int32(r.Count)
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.PreviewSchedule, request)
	p = Preview{Topic: reply.GetTopic(), Warnings: forecast.Warnings(reply.GetWarnings()), Audience: audiencePreviewFrom(reply.GetAudience())}
	for _, o := range reply.GetOccurrences() {
		p.Occurrences = append(p.Occurrences, Previewed{
			Occurrence: wire.Time(o.GetOccurrenceTime()), Due: wire.Time(o.GetDue()), Local: o.GetLocalTime(), Skipped: SkipReason(o.GetSkipped()),
		})
	}
	return p, err
}
