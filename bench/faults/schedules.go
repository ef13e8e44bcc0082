package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/party"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// startSchedules starts the process that keeps the schedules.
func (r *round) startSchedules() (err error) {
	r.scheduler, err = r.join(party.Config{Role: "scheduler", Config: plan.Config{Name: "scheduler"}})
	return err
}

// finishSchedules waits until every schedule has come to its end, or nothing happens any more,
// and writes down how each stands.
func (r *round) finishSchedules(ctx context.Context) error {
	if err := r.finish(ctx, []*process{r.scheduler}, "producer"); err != nil {
		return err
	}
	return r.Nodes[0].Ask(func(c *client.Client) error {
		return r.awaitNone(ctx, "schedules go on", 200*time.Millisecond, func() (left int64, err error) {
			for _, state := range []client.ScheduleState{client.ScheduleActive, client.SchedulePaused} {
				for s, err := range c.ListSchedules(ctx, client.ScheduleFilter{Topic: plan.Scheduled, State: state}) {
					if err != nil {
						return 0, fmt.Errorf("list schedules: %w", err)
					}
					if left++; state == client.SchedulePaused { // a fault has undone that it goes on
						if err := r.resumeSchedule(ctx, c, s.Name); err != nil {
							return 0, err
						}
					}
				}
			}
			return left, nil
		})
	})
}

func (r *round) resumeSchedule(ctx context.Context, c *client.Client, name string) error {
	call := ledger.Event{Kind: ledger.Call, Op: ledger.ResumeSchedule, Call: r.ledger.NextCall(), Topic: plan.Scheduled, Schedule: name}
	r.ledger.Append(call)
	_, err := c.ResumeSchedule(ctx, plan.Scheduled, name, "nemesis", "")
	call.Kind, call.Result = ledger.Answer, ledger.OK
	if err != nil {
		call.Result, call.Reason = tap.Outcome(err)
	}
	r.ledger.Append(call)
	return err
}

// schedules writes down how every schedule stands.
func (a *auditor) schedules(ctx context.Context, c *client.Client) error {
	for s, err := range c.ListSchedules(ctx, client.ScheduleFilter{Topic: plan.Scheduled}) {
		if err != nil {
			return err
		}
		whole, err := c.GetSchedule(ctx, plan.Scheduled, s.Name)
		switch {
		case errors.Is(err, client.ErrNotFound):
			continue
		case err != nil:
			return err
		}
		a.ledger.Append(standing(&whole))
	}
	return nil
}

func standing(s *client.ScheduleStatus) ledger.Event {
	st := &ledger.Standing{Made: s.Totals.Made, Skipped: s.Totals.Skipped, Waiting: s.Waiting, Cut: s.History != nil && len(s.Runs) >= *s.History}
	for _, list := range [][]client.ScheduleRun{s.Runs, s.OpenRuns} {
		for _, run := range list {
			st.Past = append(st.Past, ledger.Past{
				At: tap.Millis(run.Occurrence), ID: run.ID, Origin: run.Origin.String(), Outcome: run.Outcome.String(),
				Skipped: run.Skipped.String(), Count: run.Count,
			})
		}
	}
	return ledger.Event{Kind: ledger.Found, Topic: s.Topic, Schedule: s.Name, State: s.State.String(), Standing: st}
}
