package server

import (
	"context"
	"log/slog"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/server/workflows"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/wire"
)

// scheduleServer answers ScheduleService.
type scheduleServer struct {
	ddqv1.UnimplementedScheduleServiceServer
	service *service.Service
	log     *slog.Logger
}

func (s *scheduleServer) PutSchedule(ctx context.Context, r *ddqv1.PutScheduleRequest) (*ddqv1.PutScheduleResponse, error) {
	return putSchedule(ctx, s.service.Schedules, r)
}

func putSchedule(ctx context.Context, cases *schedules.Schedules, r *ddqv1.PutScheduleRequest) (*ddqv1.PutScheduleResponse, error) {
	if err := guard.AllowPut(ctx, r.GetSchedule().GetTopic()); err != nil {
		return nil, err
	}
	if err := guard.AllowAudience(ctx, ddqv1.ScheduleService_PutSchedule_FullMethodName, auth.Operate, r.GetSchedule().GetAudience()); err != nil {
		return nil, err
	}
	for _, topic := range workflows.TopicsOf(r.GetSchedule().GetWorkflow().GetSteps()) {
		if err := guard.AllowPut(ctx, topic); err != nil {
			return nil, err
		}
	}
	n, e := scheduleOf(r.GetSchedule())
	if e != nil {
		return nil, e
	}
	put, err := cases.Put(ctx, n, r.IfVersion)
	if err != nil {
		return nil, err
	}
	return &ddqv1.PutScheduleResponse{Version: put.Version, Outcome: wire.Enum(putToWire[:], put.Outcome), NextTime: wire.StampOrNil(put.Next), Warnings: warningsWire(put.Warnings)}, nil
}

func (s *scheduleServer) PutSchedules(ctx context.Context, r *ddqv1.PutSchedulesRequest) (*ddqv1.PutSchedulesResponse, error) {
	if n := len(r.GetSchedules()); n == 0 || n > schedules.MaxPuts {
		return nil, wire.Invalid("BATCH_SIZE", "schedules", "has %d; 1 to %d are allowed", n, schedules.MaxPuts)
	}
	out := &ddqv1.PutSchedulesResponse{Results: make([]*ddqv1.PutScheduleResult, len(r.GetSchedules()))}
	name := func(i int) string { return r.GetSchedules()[i].GetSchedule().GetName() }
	schedules.Spread(s.service.Schedules, len(out.Results), name, func(cases *schedules.Schedules, i int) {
		put, err := putSchedule(ctx, cases, r.GetSchedules()[i])
		out.Results[i] = &ddqv1.PutScheduleResult{Result: &ddqv1.PutScheduleResult_Put{Put: put}}
		if err != nil {
			out.Results[i].Result = &ddqv1.PutScheduleResult_Error{Error: status.Item(s.log, status.Classify(err))}
		}
	})
	return out, ctx.Err()
}

func (s *scheduleServer) GetSchedule(ctx context.Context, r *ddqv1.GetScheduleRequest) (*ddqv1.GetScheduleResponse, error) {
	found, err := s.service.Schedules.Get(ctx, r.GetTopic(), r.GetName())
	if err != nil {
		return nil, err
	}
	return &ddqv1.GetScheduleResponse{Schedule: scheduleWire(&found), Status: statusWire(&found)}, nil
}

func (s *scheduleServer) ListSchedules(ctx context.Context, r *ddqv1.ListSchedulesRequest) (*ddqv1.ListSchedulesResponse, error) {
	phase, e := wire.ReadEnum[schedule.Phase](phaseToWire[:], r.GetState(), "state")
	if e != nil {
		return nil, e
	}
	size, e := pageSize(r.GetPageSize())
	if e != nil {
		return nil, e
	}
	_, labels := wire.ReadAttributes(r.GetLabels(), nil)
	f := schedules.Filter{Topic: r.GetTopic(), Prefix: r.GetPrefix(), Phase: phase, Labels: labels}
	if since := r.GetSkippedSince(); since != nil {
		if f.SkippedSince, e = wire.Instant(since, "skipped_since"); e != nil {
			return nil, e
		}
	}
	found, next, err := s.service.Schedules.List(ctx, f, size, r.GetPageToken())
	if err != nil {
		return nil, err
	}
	out := &ddqv1.ListSchedulesResponse{NextPageToken: next}
	for i := range found {
		out.Schedules = append(out.Schedules, &ddqv1.GetScheduleResponse{Schedule: scheduleWire(&found[i]), Status: statusWire(&found[i])})
	}
	return out, nil
}

func (s *scheduleServer) DeleteSchedule(ctx context.Context, r *ddqv1.DeleteScheduleRequest) (*ddqv1.DeleteScheduleResponse, error) {
	d := schedules.Deletion{IfVersion: r.GetIfVersion()}
	switch r.GetOpenRuns() {
	case ddqv1.OpenRuns_OPEN_RUNS_UNSPECIFIED, ddqv1.OpenRuns_OPEN_RUNS_LEAVE:
	case ddqv1.OpenRuns_OPEN_RUNS_CANCEL:
		d.CancelRuns = true
	default:
		return nil, wire.Invalid("BAD_ENUM", "open_runs", "has no value %d", r.GetOpenRuns())
	}
	topic, err := s.service.Schedules.Delete(ctx, r.GetTopic(), r.GetName(), d)
	if err != nil {
		return nil, err
	}
	return &ddqv1.DeleteScheduleResponse{Topic: topic}, nil
}

func (s *scheduleServer) PauseSchedule(ctx context.Context, r *ddqv1.PauseScheduleRequest) (*ddqv1.PauseScheduleResponse, error) {
	found, err := s.service.Schedules.Pause(ctx, r.GetTopic(), r.GetName(), r.GetBy(), r.GetNote())
	if err != nil {
		return nil, err
	}
	return &ddqv1.PauseScheduleResponse{Schedule: scheduleWire(&found), Status: statusWire(&found)}, nil
}

func (s *scheduleServer) ResumeSchedule(ctx context.Context, r *ddqv1.ResumeScheduleRequest) (*ddqv1.ResumeScheduleResponse, error) {
	found, err := s.service.Schedules.Resume(ctx, r.GetTopic(), r.GetName(), r.GetBy(), r.GetNote())
	if err != nil {
		return nil, err
	}
	return &ddqv1.ResumeScheduleResponse{Schedule: scheduleWire(&found), Status: statusWire(&found)}, nil
}

func (s *scheduleServer) TriggerSchedule(ctx context.Context, r *ddqv1.TriggerScheduleRequest) (*ddqv1.TriggerScheduleResponse, error) {
	overlap, e := wire.ReadEnum[schedule.Overlap](overlapToWire[:], r.GetOverlap(), "overlap")
	if e != nil {
		return nil, e
	}
	made, err := s.service.Schedules.Trigger(ctx, schedules.Trigger{Topic: r.GetTopic(), Name: r.GetName(), Overlap: overlap, Request: r.GetRequestId()})
	if err != nil {
		return nil, err
	}
	return &ddqv1.TriggerScheduleResponse{Topic: made.Topic, Id: made.ID, Waiting: made.Waiting, Repeated: made.Repeated}, nil
}

func (s *scheduleServer) BackfillSchedule(ctx context.Context, r *ddqv1.BackfillScheduleRequest) (*ddqv1.BackfillScheduleResponse, error) {
	b := schedules.Backfill{Topic: r.GetTopic(), Name: r.GetName(), ID: r.GetId()}
	overlap, e := wire.ReadEnum[schedule.Overlap](overlapToWire[:], r.GetOverlap(), "overlap")
	if e != nil {
		return nil, e
	}
	b.Overlap = overlap
	if b.From, e = wire.Instant(r.GetFrom(), "from"); e != nil {
		return nil, e
	}
	if b.To, e = wire.Instant(r.GetTo(), "to"); e != nil {
		return nil, e
	}
	done, err := s.service.Schedules.Backfill(ctx, b)
	if err != nil {
		return nil, err
	}
	return &ddqv1.BackfillScheduleResponse{Topic: done.Topic, Id: done.ID, Total: done.Total, Repeated: done.Repeated}, nil
}

func (s *scheduleServer) CancelBackfill(ctx context.Context, r *ddqv1.CancelBackfillRequest) (*ddqv1.CancelBackfillResponse, error) {
	topic, err := s.service.Schedules.CancelBackfill(ctx, r.GetTopic(), r.GetName(), r.GetId())
	if err != nil {
		return nil, err
	}
	return &ddqv1.CancelBackfillResponse{Topic: topic}, nil
}

func (s *scheduleServer) PreviewSchedule(ctx context.Context, r *ddqv1.PreviewScheduleRequest) (*ddqv1.PreviewScheduleResponse, error) {
	span, err := previewRangeOf(r)
	if err != nil {
		return nil, err
	}
	switch of := r.GetOf().(type) {
	case *ddqv1.PreviewScheduleRequest_Existing:
		p, err := s.service.Schedules.PreviewExisting(ctx, of.Existing.GetTopic(), of.Existing.GetName(), span)
		if err != nil {
			return nil, err
		}
		return previewWire(p.Topic, &p), nil
	case *ddqv1.PreviewScheduleRequest_Schedule:
		if err := guard.AllowAudience(ctx, ddqv1.ScheduleService_PreviewSchedule_FullMethodName, auth.Read, of.Schedule.GetAudience()); err != nil {
			return nil, err
		}
		n, e := scheduleOf(of.Schedule)
		if e != nil {
			return nil, e
		}
		p, err := s.service.Schedules.Preview(ctx, n, span)
		if err != nil {
			return nil, err
		}
		return previewWire(n.Topic, &p), nil
	}
	return nil, wire.Invalid("BAD_SCHEDULE", "of", "is missing: set schedule or existing")
}
