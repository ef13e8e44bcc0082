package party

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

const (
	// history is how many runs and skips a schedule remembers.
	history = 100
	// putAtOnce is how many schedules are put in one call, when the round begins.
	putAtOnce = 500
)

// scheduler puts the schedules of a plan, changes them while the round is played, and writes
// down what it was answered. It owns a goroutine for each schedule that is changed.
type scheduler struct {
	c      *Config
	client *client.Client
	log    *ledger.Writer
}

// keepSchedules returns when everything was done to all schedules.
func keepSchedules(ctx context.Context, c *Config, log *ledger.Writer, _ io.Reader) (err error) {
	cl, err := client.Dial(c.Addr, client.Config{MaxElapsed: -1, Timeout: c.Giving})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	s := &scheduler{c, cl, log}
	all := plan.Schedules(&c.Config)
	for from := 0; from < len(all); from += putAtOnce {
		if err := s.putAll(ctx, all[from:min(from+putAtOnce, len(all))]); err != nil {
			return err
		}
	}
	var acts sync.WaitGroup
	for i := range all {
		if len(all[i].Acts) > 0 {
			acts.Go(func() { s.act(ctx, &all[i]) })
		}
	}
	acts.Wait()
	return nil
}

// timetable is what the ledger is told of a schedule.
func (s *scheduler) timetable(p *plan.Schedule, every time.Duration) *ledger.Timetable {
	from, to := s.c.Start.Truncate(time.Second).Add(time.Second), s.c.Start.Add(s.c.For).Truncate(time.Second)
	if s.isMidnight(p) {
		from = s.c.Start.Add(s.c.MidnightAt).Truncate(time.Second)
		to = from
	}
	t := &ledger.Timetable{
		FromMS: from.UnixMilli(), ToMS: to.UnixMilli(), EveryMS: every.Milliseconds(),
		Overlap: p.Overlap.String(), CatchUp: p.CatchUp.String(), GraceMS: p.Grace.Milliseconds(),
	}
	if p.Cron && every == p.Every { // by the clock, not from the start
		if over := t.FromMS % t.EveryMS; over > 0 {
			t.FromMS += t.EveryMS - over
		}
	}
	return t
}

func (s *scheduler) isMidnight(p *plan.Schedule) bool { return p.Every == 24*time.Hour }

// definition is the schedule as it is put. Edits differ by their number at least.
func (s *scheduler) definition(p *plan.Schedule, t *ledger.Timetable, number int) client.Schedule {
	d := client.Schedule{
		Topic: plan.Scheduled, Name: p.Name, Start: time.UnixMilli(t.FromMS), End: time.UnixMilli(t.ToMS),
		Overlap: p.Overlap, CatchUp: p.CatchUp, Grace: p.Grace, History: new(history),
		Task: client.Task{Payload: fmt.Appendf(nil, "%s, edit %d", p.Name, number)},
	}
	every := time.Duration(t.EveryMS) * time.Millisecond
	switch {
	case s.isMidnight(p):
		d.At = []time.Time{time.UnixMilli(t.FromMS)}
	case p.Cron && every == p.Every:
		d.Cron = []string{fmt.Sprintf("*/%d * * * * *", every/time.Second)}
	default:
		d.Every = every
	}
	return d
}

// putAll creates schedules, and asks until that is answered.
func (s *scheduler) putAll(ctx context.Context, list []plan.Schedule) error {
	calls, all := make([]ledger.Event, len(list)), make([]client.Schedule, len(list))
	for i := range list {
		t := s.timetable(&list[i], list[i].Every)
		all[i] = s.definition(&list[i], t, 0)
		calls[i] = ledger.Event{
			Kind: ledger.Call, Op: ledger.PutSchedule, Topic: plan.Scheduled, Schedule: list[i].Name, Timetable: t, Sum: tap.Sum(all[i].Task.Payload),
		}
	}
	for ctx.Err() == nil {
		for i := range calls {
			calls[i].Call = s.log.NextCall()
		}
		s.log.Append(calls...)
		results, err := s.client.PutSchedules(ctx, all)
		answers, good := make([]ledger.Event, len(calls)), true
		for i := range calls {
			answers[i] = answerOf(&calls[i])
			if i < len(results) {
				err = results[i].Err
			}
			if err != nil {
				answers[i].Result, answers[i].Reason = tap.Outcome(err)
				good = good && answeredForGood(&answers[i]) // such as when its end has passed
			}
		}
		s.log.Append(answers...)
		if good {
			return nil
		}
		s.sleep(ctx, again)
	}
	return ctx.Err()
}

// act does to a schedule what the plan says, one after the other: each again until it is
// answered for certain.
func (s *scheduler) act(ctx context.Context, p *plan.Schedule) {
	for i := range p.Acts {
		a := &p.Acts[i]
		s.sleep(ctx, time.Until(s.c.Start.Add(a.At)))
		request := fmt.Sprint(p.Name, "#", i)
		for ctx.Err() == nil && s.try(ctx, p, a, i+1, request) == ledger.Unknown {
			s.sleep(ctx, again)
		}
	}
}

// try makes one call and writes it down.
func (s *scheduler) try(ctx context.Context, p *plan.Schedule, a *plan.Act, number int, request string) ledger.Result {
	call := ledger.Event{Kind: ledger.Call, Op: a.Op, Call: s.log.NextCall(), Topic: plan.Scheduled, Schedule: p.Name}
	var definition client.Schedule
	if a.Op == ledger.PutSchedule {
		call.Timetable = s.timetable(p, a.Every)
		definition = s.definition(p, call.Timetable, number)
		call.Sum = tap.Sum(definition.Task.Payload)
	}
	s.log.Append(call)
	answer := answerOf(&call)
	var err error
	switch a.Op {
	case ledger.PutSchedule:
		_, err = s.client.PutSchedule(ctx, definition)
	case ledger.PauseSchedule:
		_, err = s.client.PauseSchedule(ctx, plan.Scheduled, p.Name, s.c.Name, "")
	case ledger.ResumeSchedule:
		_, err = s.client.ResumeSchedule(ctx, plan.Scheduled, p.Name, s.c.Name, "")
	default:
		var made client.Triggered
		made, err = s.client.TriggerSchedule(ctx, client.Trigger{Topic: plan.Scheduled, Name: p.Name, RequestID: request})
		answer.ID = made.ID
	}
	if err != nil {
		answer.Result, answer.Reason = tap.Outcome(err)
	}
	s.log.Append(answer)
	if answer.Result == ledger.Refused && !answeredForGood(&answer) {
		return ledger.Unknown // such as by a node that has no store: to be asked again
	}
	return answer.Result
}

// answeredForGood reports whether an answer is a refusal that will not be another one later.
func answeredForGood(answer *ledger.Event) bool {
	if answer.Result != ledger.Refused {
		return false
	}
	switch answer.Reason {
	case "RUN_OPEN", "BUFFER_FULL", "SCHEDULE_FINISHED", "NEVER_FIRES":
		return true
	case "NO_SCHEDULE", "NO_AUDIENCE": // it was refused, or is undone by a fault
		return true
	}
	return false
}

// answerOf is an answer that a call is done.
func answerOf(call *ledger.Event) ledger.Event {
	return ledger.Event{Kind: ledger.Answer, Op: call.Op, Call: call.Call, Topic: call.Topic, Schedule: call.Schedule, Result: ledger.OK}
}

func (s *scheduler) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
