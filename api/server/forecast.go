package server

import (
	"context"
	"math"
	"time"

	"github.com/ddq-io/ddq/actors/forecast"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/forecasts"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

func (s *scheduleServer) Forecast(ctx context.Context, r *ddqv1.ForecastRequest) (*ddqv1.ForecastResponse, error) {
	from, to, e := spanOf(r)
	if e != nil {
		return nil, e
	}
	if ms := r.GetBucketMs(); ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return nil, wire.Invalid("OUT_OF_RANGE_FIELD", "bucket_ms", "has no such value as %d", ms)
	}
	f, err := s.service.Forecasts.Forecast(ctx, forecasts.Request{Topic: r.GetTopic(), From: from, To: to, Bucket: time.Duration(r.GetBucketMs()) * time.Millisecond})
	if err != nil {
		return nil, err
	}
	return &ddqv1.ForecastResponse{
		From: wire.StampOrNil(f.From), BucketMs: store.CeilMillis(f.Bucket),
		Pending: f.Pending.Rounded(), Next: f.Next.Rounded(), Later: f.Later.Rounded(), Recipients: f.Recipients.Rounded(),
		Overdue: f.Overdue, Exact: !f.Inexact, Warnings: warningsWire(f.Warnings), LimitPerSecond: f.Limit,
	}, nil
}

func (s *scheduleServer) DryRun(ctx context.Context, r *ddqv1.DryRunRequest) (*ddqv1.DryRunResponse, error) {
	from, to, e := spanOf(r)
	if e != nil {
		return nil, e
	}
	size, e := pageSize(r.GetPageSize())
	if e != nil {
		return nil, e
	}
	runs, next, err := s.service.Forecasts.DryRun(ctx, forecasts.DryRun{Topic: r.GetTopic(), Name: r.GetName(), From: from, To: to}, size, r.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &ddqv1.DryRunResponse{NextPageToken: next, Runs: make([]*ddqv1.PlannedRun, len(runs))}
	for i := range runs {
		run := &runs[i]
		out.Runs[i] = &ddqv1.PlannedRun{
			Schedule: run.Schedule, Id: run.ID, OccurrenceTime: wire.StampOrNil(run.At), Due: wire.StampOrNil(run.Due),
			Origin: wire.Enum(originToWire[:], run.Origin), Audience: run.Audience,
		}
	}
	return out, nil
}

func warningsWire(all []forecast.Collision) []*ddqv1.DueWarning {
	var out []*ddqv1.DueWarning
	for i := range all {
		c := &all[i]
		out = append(out, &ddqv1.DueWarning{
			Time: wire.StampOrNil(c.At), SpanMs: store.CeilMillis(c.Span), Due: c.Due, Limit: c.Limit, RateLimited: c.Rated,
			EmptiestTime: wire.StampOrNil(c.Emptiest), EmptiestDue: c.EmptiestDue, Cron: c.Cron, SlackMs: store.CeilMillis(c.Slack),
		})
	}
	return out
}
