package client

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// AudienceRun is what a schedule has made of an occurrence for an audience.
type AudienceRun struct {
	ID         string           `json:"id"`
	Audience   string           `json:"audience"`
	Topic      string           `json:"topic"`
	Schedule   string           `json:"schedule"`
	Kind       string           `json:"kind,omitempty"` // empty: all recipients get a task
	State      AudienceRunState `json:"state"`
	Occurrence time.Time        `json:"occurrence_time"`
	Begin      time.Time        `json:"begin_time"`          // when the first place is
	End        time.Time        `json:"end_time,omitempty"`  // zero while it is open
	Next       time.Time        `json:"next_time,omitempty"` // of the first place whose tasks are not made; zero when all are
	Behind     time.Duration    `json:"behind_ms"`           // how late that place is

	Planned  int64 `json:"planned"`  // recipients when it began
	Made     int64 `json:"made"`     // tasks, with those that quiet hours put off
	Deferred int64 `json:"deferred"` // by quiet hours
	Done     int64 `json:"done"`     // of the tasks; not known of a run that is not tracked
	Failed   int64 `json:"failed"`
	Removed  int64 `json:"removed"`

	Skipped RecipientSkips `json:"skipped"` // recipients who got none
}

// MarshalJSON writes the form that `ddq audience runs -o json` prints.
func (r AudienceRun) MarshalJSON() ([]byte, error) { return fields.Write(r) }

// RecipientSkips counts recipients without a task, by why.
type RecipientSkips struct {
	Disabled int64 `json:"disabled"`
	OptedOut int64 `json:"opted_out"` // of the kind
	Quiet    int64 `json:"quiet"`     // the task would be due in quiet hours
	NoTime   int64 `json:"no_time"`   // the local time does not exist on that day
}

// Sum is how many there are.
func (s RecipientSkips) Sum() int64 { return s.Disabled + s.OptedOut + s.Quiet + s.NoTime }

// AudienceRunState is where a run is.
type AudienceRunState int32

// Where it may be.
const (
	AudienceRunBeginning  AudienceRunState = AudienceRunState(ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_BEGINNING)  // recipients are counted
	AudienceRunRunning    AudienceRunState = AudienceRunState(ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_RUNNING)    // tasks are made, shortly before their places
	AudienceRunWaiting    AudienceRunState = AudienceRunState(ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_WAITING)    // all are made, and some have not ended
	AudienceRunCancelling AudienceRunState = AudienceRunState(ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_CANCELLING) // tasks that no worker has are taken back
	AudienceRunDone       AudienceRunState = AudienceRunState(ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_DONE)
	AudienceRunFailed     AudienceRunState = AudienceRunState(ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_FAILED) // none of its tasks is done, and one is dead
	AudienceRunCancelled  AudienceRunState = AudienceRunState(ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_CANCELLED)
	AudienceRunLost       AudienceRunState = AudienceRunState(ddqv1.AudienceRunState_AUDIENCE_RUN_STATE_LOST) // its topic was deleted; CancelAudienceRun has the audience forget it
)

// String returns the state in lower case, such as "running".
func (s AudienceRunState) String() string {
	return wire.Word(ddqv1.AudienceRunState(s).String(), "AUDIENCE_RUN_STATE_")
}

// MarshalText writes it as String does.
func (s AudienceRunState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func audienceRunFrom(w *ddqv1.AudienceRun) AudienceRun {
	skipped := w.GetSkipped()
	return AudienceRun{
		ID: w.GetId(), Audience: w.GetAudience(), Topic: w.GetTopic(), Schedule: w.GetSchedule(), Kind: w.GetKind(), State: AudienceRunState(w.GetState()),
		Occurrence: wire.Time(w.GetOccurrenceTime()), Begin: wire.Time(w.GetBeginTime()), End: wire.Time(w.GetEndTime()), Next: wire.Time(w.GetNextTime()),
		Behind: wire.Duration(w.GetBehindMs()), Planned: w.GetPlanned(), Made: w.GetMade(), Deferred: w.GetDeferred(),
		Done: w.GetDone(), Failed: w.GetFailed(), Removed: w.GetRemoved(), Skipped: skipsFrom(skipped),
	}
}

func skipsFrom(w *ddqv1.RecipientSkips) RecipientSkips {
	return RecipientSkips{Disabled: w.GetDisabled(), OptedOut: w.GetOptedOut(), Quiet: w.GetQuiet(), NoTime: w.GetNoTime()}
}

// ListAudienceRuns returns the runs of an audience: those that are open, the earliest first,
// and the last 20 that have ended, the latest first.
func (c *Audiences) ListAudienceRuns(ctx context.Context, audience string) (runs []AudienceRun, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.ListRuns, &ddqv1.ListRunsRequest{Audience: audience})
	return call.List(reply.GetRuns(), audienceRunFrom), err
}

// GetAudienceRun returns a run of an audience that is open, or one of its last 20. ErrNotFound
// when it is neither.
func (c *Audiences) GetAudienceRun(ctx context.Context, audience, id string) (run AudienceRun, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.GetRun, &ddqv1.GetRunRequest{Audience: audience, Id: id})
	return audienceRunFrom(reply.GetRun()), err
}

// CancelAudienceRun ends a run: no more tasks are made once it returns. With remove, the tasks
// that no worker has yet are taken back. Repeated it changes nothing.
func (c *Audiences) CancelAudienceRun(ctx context.Context, audience, id string, remove bool) (run AudienceRun, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.audiences.CancelRun, &ddqv1.CancelRunRequest{Audience: audience, Id: id, Delete: remove})
	return audienceRunFrom(reply.GetRun()), err
}
