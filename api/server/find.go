package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

func (q *queue) ListTasks(ctx context.Context, r *ddqv1.ListTasksRequest) (*ddqv1.ListTasksResponse, error) {
	state, e := wire.ReadState(r.State, "state")
	if e != nil {
		return nil, e
	}
	if r.Filter != nil {
		return q.findTasks(ctx, r, state)
	}
	tasks, next, err := page(r.PageSize, r.PageToken, func(size int, token string) ([]service.Found, string, error) {
		return q.service.Finder.List(ctx, r.Topic, state, size, token)
	})
	if err != nil {
		return nil, err
	}
	return &ddqv1.ListTasksResponse{Tasks: tasks, NextPageToken: next}, nil
}

// findTasks is ListTasks with a filter.
func (q *queue) findTasks(ctx context.Context, r *ddqv1.ListTasksRequest, state store.State) (*ddqv1.ListTasksResponse, error) {
	filter, e := taskFilterOf(r.Filter)
	if e != nil {
		return nil, e
	}
	if state != store.StateUnknown {
		if len(filter.States) > 0 {
			return nil, wire.Invalid("BAD_FILTER", "filter.states", "and state exclude each other")
		}
		filter.States = []store.State{state}
	}
	tasks, next, err := page(r.PageSize, r.PageToken, func(size int, token string) ([]service.Found, string, error) {
		return q.service.Finder.Find(ctx, r.Topic, filter, size, token)
	})
	if err != nil {
		return nil, err
	}
	return &ddqv1.ListTasksResponse{Tasks: tasks, NextPageToken: next}, nil
}

// taskFilterOf converts a filter that may be unset.
func taskFilterOf(f *ddqv1.TaskFilter) (out service.TaskFilter, e *problem.Error) {
	for _, asked := range f.GetStates() {
		state, e := wire.ReadState(asked, "filter.states")
		if e == nil && state == store.StateUnknown {
			e = wire.Invalid("BAD_ENUM", "filter.states", "has no value %d", asked)
		}
		if e != nil {
			return out, e
		}
		out.States = append(out.States, state)
	}
	out.DueFrom, out.DueBefore = store.Millis(f.GetDueFromUnixMs()), store.Millis(f.GetDueBeforeUnixMs())
	out.CreatedFrom, out.CreatedBefore = store.Millis(f.GetCreatedFromUnixMs()), store.Millis(f.GetCreatedBeforeUnixMs())
	out.IDPrefix = f.GetIdPrefix()
	for _, a := range f.GetAttributes() {
		match := service.AttributeMatch{Key: a.GetKey(), Value: a.GetEquals()}
		if _, equals := a.GetMatch().(*ddqv1.AttributeFilter_Equals); !equals {
			match.Value, match.Prefix = a.GetPrefix(), true // without either, everything begins like that
		}
		out.Attributes = append(out.Attributes, match)
	}
	return out, nil
}

func (q *queue) CountTasks(ctx context.Context, r *ddqv1.CountTasksRequest) (*ddqv1.CountTasksResponse, error) {
	filter, e := taskFilterOf(r.Filter)
	if e != nil {
		return nil, e
	}
	c, err := q.service.Finder.Count(ctx, r.Topic, filter)
	if err != nil {
		return nil, err
	}
	return &ddqv1.CountTasksResponse{
		Scheduled: c.Scheduled, Ready: c.Ready, Retrying: c.Retrying, Running: c.Running, Done: c.Done, Dead: c.Dead,
	}, nil
}

func (q *queue) DueHistogram(ctx context.Context, r *ddqv1.DueHistogramRequest) (*ddqv1.DueHistogramResponse, error) {
	h, err := q.service.Finder.DueHistogram(ctx, r.Topic, store.Millis(r.StartUnixMs), r.BucketMs, int(r.Buckets))
	if err != nil {
		return nil, err
	}
	return &ddqv1.DueHistogramResponse{
		StartUnixMs: int64(h.Start), BucketMs: r.BucketMs, Counts: h.Counts, Before: h.Before, After: h.After, Pending: h.Pending(),
	}, nil
}

func (q *queue) DeleteTasks(r *ddqv1.DeleteTasksRequest, stream grpc.ServerStreamingServer[ddqv1.DeleteTasksResponse]) error {
	filter, e := taskFilterOf(r.Filter)
	if e != nil {
		return e
	}
	b := service.Bulk{Topic: r.Topic, Filter: filter, DryRun: r.DryRun, Max: r.MaxTasks}
	return q.service.Bulk.Delete(stream.Context(), b, func(p service.Progress) error {
		return stream.Send(&ddqv1.DeleteTasksResponse{Progress: progressWire(p)})
	})
}

func (q *queue) RescheduleTasks(r *ddqv1.RescheduleTasksRequest, stream grpc.ServerStreamingServer[ddqv1.RescheduleTasksResponse]) error {
	filter, e := taskFilterOf(r.Filter)
	if e != nil {
		return e
	}
	to, e := shiftOf(r)
	if e != nil {
		return e
	}
	b := service.Bulk{Topic: r.Topic, Filter: filter, DryRun: r.DryRun, Max: r.MaxTasks}
	return q.service.Bulk.Reschedule(stream.Context(), b, to, func(p service.Progress) error {
		return stream.Send(&ddqv1.RescheduleTasksResponse{Progress: progressWire(p)})
	})
}

func progressWire(p service.Progress) *ddqv1.BulkProgress {
	return &ddqv1.BulkProgress{Matched: p.Matched, Changed: p.Changed, Skipped: p.Skipped, Done: p.Done, Capped: p.Capped}
}

func shiftOf(r *ddqv1.RescheduleTasksRequest) (to service.Shift, e *problem.Error) {
	var w service.When
	switch when := r.When.(type) {
	case *ddqv1.RescheduleTasksRequest_Delay:
		w.Delay, e = wire.Delay(when.Delay, "delay")
		to.When = &w
	case *ddqv1.RescheduleTasksRequest_ExecuteTime:
		w.At, e = wire.Instant(when.ExecuteTime, "execute_time")
		to.When = &w
	case *ddqv1.RescheduleTasksRequest_Shift:
		to.By, e = shiftBy(when.Shift)
	default:
		e = wire.Invalid("BAD_TIME", "when", "is missing: set delay, execute_time or shift")
	}
	if e == nil && r.Spread != nil {
		to.Spread, e = wire.Delay(r.Spread, "spread")
	}
	return to, e
}

// shiftBy is delayOf for what may be negative.
func shiftBy(d *durationpb.Duration) (time.Duration, *problem.Error) {
	if d.GetSeconds() >= 0 && d.GetNanos() >= 0 {
		return wire.Delay(d, "shift")
	}
	back, e := wire.Delay(&durationpb.Duration{Seconds: -d.GetSeconds(), Nanos: -d.GetNanos()}, "shift")
	return -back, e
}
