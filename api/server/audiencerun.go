package server

import (
	"context"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

func (a *audienceServer) ListRuns(ctx context.Context, r *ddqv1.ListRunsRequest) (*ddqv1.ListRunsResponse, error) {
	runs, err := a.cases.Runs(ctx, r.GetAudience(), a.now())
	if err != nil {
		return nil, err
	}
	w := new(ddqv1.ListRunsResponse)
	for i := range runs {
		w.Runs = append(w.Runs, runWire(&runs[i]))
	}
	return w, nil
}

func (a *audienceServer) GetRun(ctx context.Context, r *ddqv1.GetRunRequest) (*ddqv1.GetRunResponse, error) {
	run, err := a.cases.Run(ctx, r.GetAudience(), r.GetId(), a.now())
	if err != nil {
		return nil, err
	}
	return &ddqv1.GetRunResponse{Run: runWire(&run)}, nil
}

func (a *audienceServer) CancelRun(ctx context.Context, r *ddqv1.CancelRunRequest) (*ddqv1.CancelRunResponse, error) {
	run, err := a.cases.CancelRun(ctx, r.GetAudience(), r.GetId(), r.GetDelete(), a.now())
	if err != nil {
		return nil, err
	}
	return &ddqv1.CancelRunResponse{Run: runWire(&run)}, nil
}

func runWire(r *audiences.Run) *ddqv1.AudienceRun {
	return &ddqv1.AudienceRun{
		Id: r.Walk.Run, Audience: r.Audience, Topic: r.Topic, Schedule: r.Schedule, Kind: r.Order.Kind,
		OccurrenceTime: wire.StampOrNil(r.Occurrence), BeginTime: wire.StampOrNil(r.At), EndTime: wire.StampOrNil(r.Ended), NextTime: wire.StampOrNil(r.Next),
		State: runState(r), BehindMs: int64(r.Behind), Planned: r.Planned, Made: r.Made(), Deferred: r.Verdicts[audience.Deferred],
		Done: r.Ends[0], Failed: r.Ends[1], Removed: r.Ends[2], Skipped: skipsWire(&r.Verdicts),
	}
}

func skipsWire(n *[audience.Verdicts]int64) *ddqv1.RecipientSkips {
	return &ddqv1.RecipientSkips{
		Disabled: n[audience.Disabled], OptedOut: n[audience.OptedOut], Quiet: n[audience.Silent], NoTime: n[audience.NoTime],
	}
}

var runStates = [...]ddqv1.AudienceRunState{
	audience.Ordered: ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_BEGINNING, audience.Walking: ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_RUNNING,
	audience.Undoing: ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_CANCELLING, audience.Waiting: ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_WAITING,
}

func runState(r *audiences.Run) ddqv1.AudienceRunState {
	switch {
	case r.Lost:
		return ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_LOST
	case r.Cancelled && (r.Ended != 0 || r.Phase != audience.Undoing):
		return ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_CANCELLED
	case r.Ended == 0 && r.Phase != audience.Over:
		return runStates[r.Phase]
	case r.Outcome() == store.ChangeDead:
		return ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_FAILED
	}
	return ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_DONE
}
