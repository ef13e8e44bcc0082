package ddqtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
)

// ErrAsked is how attempts fail that a Play has fail.
var ErrAsked = errors.New("ddqtest: the test has this attempt fail")

// Play is a workflow to be played, and what happens to it. Only Workflow and Steps are needed.
type Play struct {
	// Workflow is what is submitted. Its Topic defaults to "test", and its ID to "test".
	Workflow client.Workflow

	// Steps are the handlers, as a worker has them. They are called beside each other, as a
	// worker calls them: what they share needs a lock.
	Steps worker.Steps

	// Fail is how many attempts of a handler fail before it is called, by its name in Steps. A
	// step fails for good when that is more than its retries. Of copies each one fails as often.
	Fail map[string]int

	// Crash is how many attempts of a handler are lost after it was called, as when the worker
	// dies before its ack, by its name in Steps. Its work is done, and is to be done again: what
	// Once remembers is not. An attempt that is to fail, too, fails before.
	Crash map[string]int

	// Signals come at those times after the submit.
	Signals []Signal

	// CancelAfter cancels the workflow so long after the submit. 0: nobody does.
	CancelAfter time.Duration

	// Limit is the time, of the fake clock, in which the workflow has to end, or the test fails. Some
	// seconds of it take as many milliseconds. Defaults to a day.
	Limit time.Duration
}

// Signal is one that comes while a workflow is played.
type Signal struct {
	After time.Duration // from the submit
	client.Signal
}

// Result is what became of a workflow.
type Result struct {
	client.WorkflowStatus
	Steps []client.StepStatus // the first thousand, in order
	Took  time.Duration       // from the submit to the end, by the fake clock
}

// Step returns how a step ended, or its first copy; the zero StepStatus when there is none.
func (r *Result) Step(name string) client.StepStatus {
	i := slices.IndexFunc(r.Steps, func(s client.StepStatus) bool { return s.Name == name })
	if i < 0 {
		return client.StepStatus{}
	}
	return r.Steps[i]
}

// Run plays a workflow to its end, and returns what became of it. The test fails at once when the
// workflow is refused, or does not end within a day.
func Run(t *testing.T, w client.Workflow, steps worker.Steps) *Result {
	t.Helper()
	return Play{Workflow: w, Steps: steps}.Run(t)
}

// Run plays it to its end, and returns what became of it. The test fails at once when the workflow, a
// signal or the cancel is refused, or the workflow does not end within the Limit. It must not be called
// in a bubble of testing/synctest.
func (p Play) Run(t *testing.T) (r *Result) {
	t.Helper()
	if p.Workflow.Topic == "" {
		p.Workflow.Topic = "test"
	}
	if p.Workflow.ID == "" {
		p.Workflow.ID = "test"
	}
	if p.Limit == 0 {
		p.Limit = 24 * time.Hour
	}
	var err error
	synctest.Test(t, func(t *testing.T) { r, err = p.play(t.Context()) })
	if err != nil {
		t.Fatalf("ddqtest: %v", err)
	}
	return r
}

// play is Run within the bubble.
func (p *Play) play(ctx context.Context) (r *Result, err error) {
	s, err := start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(context.WithoutCancel(ctx))) }()
	stop := s.work(ctx, topicsOf(&p.Workflow), p.handlers())
	defer func() { err = errors.Join(err, stop()) }()
	c := client.New(s.conn, client.Config{})
	began := time.Now()
	if _, err := c.Submit(ctx, p.Workflow); err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	if err := p.meddle(ctx, c, began); err != nil {
		return nil, err
	}
	return p.await(ctx, c, began)
}

// meddle sends the signals and the cancel of the play, in the order of their times.
func (p *Play) meddle(ctx context.Context, c *client.Client, began time.Time) error {
	type act struct {
		after time.Duration
		do    func() error
	}
	var acts []act
	for _, sig := range p.Signals {
		acts = append(acts, act{sig.After, func() error {
			return c.SignalWorkflow(ctx, p.Workflow.Topic, p.Workflow.ID, sig.Signal)
		}})
	}
	if p.CancelAfter > 0 {
		acts = append(acts, act{p.CancelAfter, func() error {
			_, err := c.CancelWorkflow(ctx, p.Workflow.Topic, p.Workflow.ID, "ddqtest")
			return err
		}})
	}
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.after - b.after) })
	for _, a := range acts {
		time.Sleep(time.Until(began.Add(a.after)))
		if err := a.do(); err != nil {
			return fmt.Errorf("%v after the submit: %w", a.after, err)
		}
	}
	return nil
}

// await waits for the end of the workflow.
func (p *Play) await(ctx context.Context, c *client.Client, began time.Time) (*Result, error) {
	for {
		left := time.Until(began.Add(p.Limit))
		s, err := c.WaitWorkflow(ctx, p.Workflow.Topic, p.Workflow.ID, max(0, min(left, time.Minute)))
		switch {
		case err != nil:
			return nil, err
		case !s.State.Ended() && left <= 0:
			return nil, p.stuck(ctx, c)
		case !s.State.Ended():
			continue
		}
		r := &Result{}
		r.WorkflowStatus, r.Steps, err = c.GetWorkflow(ctx, p.Workflow.Topic, p.Workflow.ID)
		r.Took = s.EndedAt.Sub(began)
		return r, err
	}
}

// stuck says of a workflow that has not ended which steps are open.
func (p *Play) stuck(ctx context.Context, c *client.Client) error {
	s, steps, err := c.GetWorkflow(ctx, p.Workflow.Topic, p.Workflow.ID)
	if err != nil {
		return err
	}
	var open []string
	for i := range steps {
		if !steps[i].EndedAt.IsZero() {
			continue
		}
		open = append(open, fmt.Sprintf("%s is %v", steps[i].Name, steps[i].State))
	}
	return fmt.Errorf("the workflow is %v after %v: %v", s.State, p.Limit, open)
}
