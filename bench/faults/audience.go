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

// startAudience starts the process that keeps the audience.
func (r *round) startAudience() (err error) {
	r.registrar, err = r.join(party.Config{Role: "registrar", Config: plan.Config{Name: "registrar"}})
	return err
}

// finishAudience waits until no run of the audience is open or to come, or nothing happens any more.
func (r *round) finishAudience(ctx context.Context) error {
	if err := r.finish(ctx, []*process{r.registrar}, "producer"); err != nil {
		return err
	}
	return r.Nodes[0].Ask(func(c *client.Client) error {
		return r.awaitNone(ctx, "tasks of an audience are to come", 200*time.Millisecond, func() (left int64, err error) {
			for _, err := range c.ListSchedules(ctx, client.ScheduleFilter{Topic: plan.Spread, State: client.ScheduleActive}) {
				if err != nil {
					return 0, fmt.Errorf("list schedules: %w", err)
				}
				left++
			}
			runs, err := runsOf(ctx, c)
			for i := range runs {
				if runs[i].End.IsZero() {
					left += 1 + max(0, runs[i].Planned-runs[i].Done-runs[i].Failed-runs[i].Removed)
				}
			}
			return left, err
		})
	})
}

// runsOf are the runs of the audience. A fault may have undone that there is one.
func runsOf(ctx context.Context, c *client.Client) ([]client.AudienceRun, error) {
	runs, err := c.ListAudienceRuns(ctx, plan.Audience)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list runs of the audience: %w", err)
	}
	return runs, nil
}

// audience writes down how every run of the audience stands.
func (a *auditor) audience(ctx context.Context, c *client.Client) error {
	runs, err := runsOf(ctx, c)
	for i := range runs {
		r := &runs[i]
		a.ledger.Append(ledger.Event{
			Kind: ledger.Found, Topic: r.Topic, Schedule: r.Schedule, Occurrence: tap.Millis(r.Occurrence), State: r.State.String(),
			Walk: &ledger.Walk{Begin: tap.Millis(r.Begin), Made: r.Made, Ended: r.Done + r.Failed + r.Removed, Over: !r.End.IsZero()},
		})
	}
	return err
}
