package client

import (
	"context"
	"iter"
	"time"

	"github.com/ddq-io/ddq/api/client/forecast"
	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/fields"
	"github.com/ddq-io/ddq/api/client/internal/ids"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// PutOutcome is what PutSchedule did.
type PutOutcome int32

// What it may do.
const (
	PutCreated   PutOutcome = PutOutcome(ddqv1.PutOutcome_PUT_OUTCOME_CREATED)
	PutChanged   PutOutcome = PutOutcome(ddqv1.PutOutcome_PUT_OUTCOME_CHANGED)
	PutUnchanged PutOutcome = PutOutcome(ddqv1.PutOutcome_PUT_OUTCOME_UNCHANGED) // it was like that before
)

// String returns the outcome in lower case, such as "created".
func (o PutOutcome) String() string { return wire.Word(ddqv1.PutOutcome(o).String(), "PUT_OUTCOME_") }

// SchedulePut says what became of a schedule that was put.
type SchedulePut struct {
	Version int64      `json:"version"`
	Outcome PutOutcome `json:"outcome"`
	Next    time.Time  `json:"next_time,omitempty"` // the first occurrence to come; zero when there is none, or when it depends on the end of a run

	// When too much is due with one of the next ten runs. Puts that come close together are not
	// all looked at.
	Warnings []DueWarning `json:"warnings,omitempty"`
}

// MarshalJSON writes the form that `ddq schedule put -o json` prints.
func (p SchedulePut) MarshalJSON() ([]byte, error) { return fields.Write(p) }

// UnmarshalJSON reads it.
func (p *SchedulePut) UnmarshalJSON(b []byte) error { return fields.Read(b, p) }

// Schedules are the calls about schedules: put, look, preview, pause, trigger and backfill.
// A Client has them.
type Schedules struct {
	*caller
	schedules ddqv1.ScheduleServiceClient
}

// PutSchedule creates a schedule, or changes the one of its name in place. The same again
// changes nothing: every replica may put its schedules when it starts. Occurrences so far
// keep their runs; later ones follow the new timetable. The topic is created with the
// server's defaults when it does not exist.
func (c *Schedules) PutSchedule(ctx context.Context, s Schedule) (SchedulePut, error) {
	return c.putSchedule(ctx, call.Idempotent, s, nil)
}

// PutScheduleIf is PutSchedule for a schedule of this version: ErrVersion when it has another
// one. With version 0 it must not exist yet: ErrExists. An answer that was lost is not
// asked for again.
func (c *Schedules) PutScheduleIf(ctx context.Context, s Schedule, version int64) (SchedulePut, error) {
	return c.putSchedule(ctx, call.Once, s, &version)
}

func (c *Schedules) putSchedule(ctx context.Context, repeat call.Safety, s Schedule, ifVersion *int64) (put SchedulePut, err error) {
	w, e := c.scheduleWire(&s)
	if e != nil {
		return put, e
	}
	reply, err := call.Answer(ctx, c.do, repeat, c.schedules.PutSchedule, &ddqv1.PutScheduleRequest{Schedule: w, IfVersion: ifVersion})
	return putFrom(reply), err
}

func putFrom(r *ddqv1.PutScheduleResponse) SchedulePut {
	return SchedulePut{Version: r.GetVersion(), Outcome: PutOutcome(r.GetOutcome()), Next: wire.Time(r.GetNextTime()), Warnings: forecast.Warnings(r.GetWarnings())}
}

// SchedulePutResult is the outcome of one schedule of PutSchedules.
type SchedulePutResult struct {
	SchedulePut
	Err error // nil: it is as it was put
}

// PutSchedules puts 1 to 1,000 schedules, which fail or succeed alone, and returns a result
// for each, in order. The error is that of the first that failed.
func (c *Schedules) PutSchedules(ctx context.Context, all []Schedule) ([]SchedulePutResult, error) {
	results := make([]SchedulePutResult, len(all))
	request, sent := &ddqv1.PutSchedulesRequest{}, []int(nil)
	for i := range all {
		w, e := c.scheduleWire(&all[i])
		if e != nil {
			results[i].Err = e
			continue
		}
		request.Schedules, sent = append(request.Schedules, &ddqv1.PutScheduleRequest{Schedule: w}), append(sent, i)
	}
	if len(sent) > 0 || len(all) == 0 {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.PutSchedules, request)
		if err != nil {
			return nil, err
		}
		for n, i := range sent {
			if n < len(reply.GetResults()) {
				r := reply.GetResults()[n]
				results[i].SchedulePut, results[i].Err = putFrom(r.GetPut()), plain(fromItem(r.GetError()))
			}
		}
	}
	for i := range results {
		if results[i].Err != nil {
			return results, results[i].Err
		}
	}
	return results, nil
}

// GetSchedule returns a schedule and how it stands. Every topic is searched when topic is
// empty.
func (c *Schedules) GetSchedule(ctx context.Context, topic, name string) (s ScheduleStatus, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.GetSchedule, &ddqv1.GetScheduleRequest{Topic: topic, Name: name})
	return scheduleStatus(reply.GetSchedule(), reply.GetStatus()), err
}

// ScheduleFilter says which schedules are meant. The zero ScheduleFilter means all.
type ScheduleFilter struct {
	Topic  string            // all topics when empty
	Prefix string            // of names
	State  ScheduleState     // any when zero
	Labels map[string]string // schedules that have all of these

	// SkippedSince finds schedules that have skipped an occurrence of this time or later, as far
	// back as their history goes; of those without a history all that have ever skipped one. Any
	// when zero.
	SkippedSince time.Time
}

// ListSchedules goes through schedules in no particular order. The sequence ends with the
// first error.
func (c *Schedules) ListSchedules(ctx context.Context, f ScheduleFilter) iter.Seq2[ScheduleStatus, error] {
	return call.Pages(func(token string) ([]ScheduleStatus, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.ListSchedules, &ddqv1.ListSchedulesRequest{
			Topic: f.Topic, Prefix: f.Prefix, State: ddqv1.ScheduleState(f.State), Labels: wire.Attributes(f.Labels),
			SkippedSince: wire.Stamp(f.SkippedSince), PageSize: call.PageSize, PageToken: token,
		})
		return call.List(reply.GetSchedules(), func(s *ddqv1.GetScheduleResponse) ScheduleStatus {
			return scheduleStatus(s.GetSchedule(), s.GetStatus())
		}), reply.GetNextPageToken(), err
	})
}

// DeleteSchedule deletes a schedule and returns the topic it was in; what was made ahead is
// taken back. Its open runs go on, unless cancelRuns says that those which wait are
// deleted, and those which run asked to cancel.
func (c *Schedules) DeleteSchedule(ctx context.Context, topic, name string, cancelRuns bool) (foundIn string, err error) {
	r := &ddqv1.DeleteScheduleRequest{Topic: topic, Name: name, OpenRuns: ddqv1.OpenRuns_OPEN_RUNS_LEAVE}
	if cancelRuns {
		r.OpenRuns = ddqv1.OpenRuns_OPEN_RUNS_CANCEL
	}
	reply, err := call.Answer(ctx, c.do, call.Once, c.schedules.DeleteSchedule, r)
	return reply.GetTopic(), err
}

// PauseSchedule stops a schedule from making runs until ResumeSchedule. Occurrences in
// between are skipped, not caught up with. by and note say who and why.
func (c *Schedules) PauseSchedule(ctx context.Context, topic, name, by, note string) (s ScheduleStatus, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.PauseSchedule, &ddqv1.PauseScheduleRequest{Topic: topic, Name: name, By: by, Note: note})
	return scheduleStatus(reply.GetSchedule(), reply.GetStatus()), err
}

// ResumeSchedule lets a paused schedule go on. by and note say who and why.
func (c *Schedules) ResumeSchedule(ctx context.Context, topic, name, by, note string) (s ScheduleStatus, err error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.ResumeSchedule, &ddqv1.ResumeScheduleRequest{Topic: topic, Name: name, By: by, Note: note})
	return scheduleStatus(reply.GetSchedule(), reply.GetStatus()), err
}

// Trigger asks for a run outside the timetable.
type Trigger struct {
	Topic, Name string  // every topic is searched when Topic is empty
	Overlap     Overlap // what becomes of the run while another one is open; the schedule's when zero

	// RequestID makes the call repeatable: the same one again makes no second run. At most
	// 128 bytes; a schedule knows its last 20. TriggerSchedule makes one when it is empty.
	RequestID string
}

// Triggered is what a trigger made.
type Triggered struct {
	Topic    string `json:"topic"`
	ID       string `json:"id,omitempty"`       // of the task; empty when it is a repeat whose run is over
	Waiting  bool   `json:"waiting,omitempty"`  // for the end of another run
	Repeated bool   `json:"repeated,omitempty"` // the same request was made before
}

// TriggerSchedule makes a run of a schedule now. ErrPrecondition when another run is open and
// the overlap is OverlapSkip: Error.ID is that of its task.
func (c *Schedules) TriggerSchedule(ctx context.Context, t Trigger) (made Triggered, err error) {
	if err := ids.Fill(&t.RequestID); err != nil {
		return made, err
	}
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.TriggerSchedule, &ddqv1.TriggerScheduleRequest{
		Topic: t.Topic, Name: t.Name, Overlap: ddqv1.Overlap(t.Overlap), RequestId: t.RequestID,
	})
	return Triggered{Topic: reply.GetTopic(), ID: reply.GetId(), Waiting: reply.GetWaiting(), Repeated: reply.GetRepeated()}, err
}

// Backfill asks for runs of occurrences that have been.
type Backfill struct {
	Topic, Name string    // every topic is searched when Topic is empty
	From, To    time.Time // both ends are part of it; at most 10,000 occurrences
	Overlap     Overlap   // OverlapBufferAll, one after the other and also when zero, or OverlapAllow

	// ID makes the call repeatable: the same one again changes nothing. At most 128 bytes.
	// BackfillSchedule makes one when it is empty.
	ID string
}

// Backfilling is a backfill that was accepted.
type Backfilling struct {
	Topic    string `json:"topic"`
	ID       string `json:"id"`
	Total    int64  `json:"total"` // occurrences; 0 of a repeat
	Repeated bool   `json:"repeated,omitempty"`
}

// BackfillSchedule makes runs of the occurrences of a range that have been, in order, due as
// they are made.
func (c *Schedules) BackfillSchedule(ctx context.Context, b Backfill) (started Backfilling, err error) {
	if err := ids.Fill(&b.ID); err != nil {
		return started, err
	}
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.schedules.BackfillSchedule, &ddqv1.BackfillScheduleRequest{
		Topic: b.Topic, Name: b.Name, From: wire.Stamp(b.From), To: wire.Stamp(b.To), Overlap: ddqv1.Overlap(b.Overlap), Id: b.ID,
	})
	return Backfilling{Topic: reply.GetTopic(), ID: reply.GetId(), Total: reply.GetTotal(), Repeated: reply.GetRepeated()}, err
}

// CancelBackfill ends a backfill, and returns the topic of the schedule. Runs that it made
// go on.
func (c *Schedules) CancelBackfill(ctx context.Context, topic, name, id string) (foundIn string, err error) {
	reply, err := call.Answer(ctx, c.do, call.Once, c.schedules.CancelBackfill, &ddqv1.CancelBackfillRequest{Topic: topic, Name: name, Id: id})
	return reply.GetTopic(), err
}
