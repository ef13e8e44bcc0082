package client

import (
	"context"
	"iter"
	"time"

	"github.com/ddq-io/ddq/api/client/forecast"
	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// DueWarning says that more tasks are due in a span of time than are let through in it.
type DueWarning = forecast.Warning

// ForecastRange says what a forecast is of. The zero ForecastRange means a day from now on, by
// minutes.
type ForecastRange struct {
	From, To time.Time
	Bucket   time.Duration // at least a second; at most 2,000 of them
}

// Forecast is what is due in each bucket of a range. All columns are as long.
type Forecast struct {
	From       time.Time // of the first bucket
	Bucket     time.Duration
	Pending    []int64 // tasks that wait
	Next       []int64 // runs of schedules: the next one of each
	Later      []int64 // and the others
	Recipients []int64 // tasks for recipients of audiences that are not made yet
	Overdue    int64   // tasks that wait and are due before From
	Exact      bool    // nothing was estimated
	Warnings   []DueWarning
	Limit      int64 // tasks a second beyond which it warns
}

// Due is how many tasks are due in a bucket.
func (f *Forecast) Due(bucket int) int64 {
	return f.Pending[bucket] + f.Next[bucket] + f.Later[bucket] + f.Recipients[bucket]
}

// Forecast counts what is due in a range, bucket by bucket: in a topic, or in all when topic is
// empty.
func (c *Schedules) Forecast(ctx context.Context, topic string, r ForecastRange) (f Forecast, err error) {
	request := &ddqv1.ForecastRequest{Topic: topic, From: wire.Stamp(r.From), To: wire.Stamp(r.To), BucketMs: wire.Millis(r.Bucket)}
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.Forecast, request)
	return Forecast{
		From: wire.Time(reply.GetFrom()), Bucket: wire.Duration(reply.GetBucketMs()), Pending: reply.GetPending(), Next: reply.GetNext(),
		Later: reply.GetLater(), Recipients: reply.GetRecipients(), Overdue: reply.GetOverdue(), Exact: reply.GetExact(),
		Warnings: forecast.Warnings(reply.GetWarnings()), Limit: reply.GetLimitPerSecond(),
	}, err
}

// PlannedRun is a run that would be made.
type PlannedRun struct {
	Schedule   string    `json:"schedule"`
	ID         string    `json:"id"` // of the task; of an audience, of the run
	Occurrence time.Time `json:"occurrence_time"`
	Due        time.Time `json:"due"` // of a schedule with slack, the earliest time
	Origin     RunOrigin `json:"origin"`
	Audience   bool      `json:"audience,omitempty"` // the run makes a task for each recipient
}

// MarshalJSON writes the form that `ddq schedule dry-run -o json` prints.
func (p PlannedRun) MarshalJSON() ([]byte, error) { return fields.Write(p) }

// UnmarshalJSON reads it.
func (p *PlannedRun) UnmarshalJSON(b []byte) error { return fields.Read(b, p) }

// DryRun goes through the runs that the schedules of a topic would make, or the one that is
// named: those that are due from a moment on, from now when it is zero, and before another.
// It takes it that runs end as soon as they are due. The sequence ends with the first error.
func (c *Schedules) DryRun(ctx context.Context, topic, name string, from, to time.Time) iter.Seq2[PlannedRun, error] {
	return call.Pages(func(token string) ([]PlannedRun, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.DryRun, &ddqv1.DryRunRequest{
			Topic: topic, Name: name, From: wire.Stamp(from), To: wire.Stamp(to), PageSize: call.PageSize, PageToken: token,
		})
		return call.List(reply.GetRuns(), plannedRunFrom), reply.GetNextPageToken(), err
	})
}

func plannedRunFrom(r *ddqv1.PlannedRun) PlannedRun {
	return PlannedRun{
		Schedule: r.GetSchedule(), ID: r.GetId(), Occurrence: wire.Time(r.GetOccurrenceTime()), Due: wire.Time(r.GetDue()),
		Origin: RunOrigin(r.GetOrigin()), Audience: r.GetAudience(),
	}
}
