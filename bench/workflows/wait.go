package workflows

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/testbed"
)

const (
	submitBatch   = 100
	submitsAtOnce = 64
	signalled     = 1000 // of the workflows that wait, at most
	signalsAtOnce = 64
)

// weigh submits workflows that wait for a signal, and says what each of them takes: all but the first
// tenth, which has the server and its store grow to what they need in any case. Then some of them get
// their signal.
func (s *show) weigh(ctx context.Context) (*flowLine, error) {
	shape := s.shape(shapeWait)
	line, books := s.line(&shape), newFlowBooks(&shape)
	line.Open = shape.workflows
	if _, err := s.client.CreateTopic(ctx, shape.name, client.Policy{MaxWorkflows: new(2 * shape.workflows)}); err != nil {
		return nil, err
	}
	first := shape.workflows / 10
	if err := s.submitMany(ctx, &shape, 0, first); err != nil {
		return nil, err
	}
	before, err := s.weight(ctx)
	if err != nil {
		return nil, err
	}
	begun, used := time.Now(), s.usage()
	if err := s.submitMany(ctx, &shape, first, shape.workflows); err != nil {
		return nil, err
	}
	n, took := float64(shape.workflows-first), time.Since(begun).Seconds()
	line.CPU = s.usage().Minus(used)
	line.Seconds, line.WorkflowsPerS = result.Round(took, 3), result.Round(n/took, 1)
	after, err := s.weight(ctx)
	if err != nil {
		return nil, err
	}
	line.StoreBytes = result.Round(float64(after.Store-before.Store)/n, 1)
	line.ServerBytes = result.Round(float64(after.Server-before.Server)/n, 1)
	line.FreshBytes = result.Round(float64(after.Fresh-before.Fresh)/n, 1)
	return line, s.signal(ctx, &shape, books, line)
}

// weight weighs the store and the only server, and connects to it again.
func (s *show) weight(ctx context.Context) (w testbed.Weight, err error) {
	if w, err = s.fleet[0].Weigh(ctx, s.Settle); err != nil {
		return w, err
	}
	_, err = s.client.Server(ctx) // repeated until it is connected
	return w, err
}

// submitMany submits workflows of a shape in batches, from one to before another.
func (s *show) submitMany(ctx context.Context, shape *flowShape, from, to int) error {
	calls := ddqv1.NewWorkflowServiceClient(s.client.Conn())
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(submitsAtOnce)
	for first := from; first < to && within.Err() == nil; first += submitBatch {
		g.Go(func() error { return submitBatchOf(within, calls, shape, first, min(first+submitBatch, to)) })
	}
	return g.Wait()
}

// submitBatchOf submits workflows in one call. The first that is refused is an error.
func submitBatchOf(ctx context.Context, calls ddqv1.WorkflowServiceClient, shape *flowShape, from, to int) error {
	var all ddqv1.SubmitWorkflowsRequest
	for i := from; i < to; i++ {
		w := shape.workflow
		w.ID = flowPrefix + strconv.Itoa(i)
		wire, err := w.Wire()
		if err != nil {
			return err
		}
		all.Workflows = append(all.Workflows, wire)
	}
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	answer, err := calls.SubmitWorkflows(ctx, &all)
	if err != nil {
		return err
	}
	for _, r := range answer.GetResults() {
		if e := r.GetError(); e != nil {
			return fmt.Errorf("%s: %s", e.GetReason(), e.GetMessage())
		}
	}
	return nil
}

// signal gives some of the workflows that wait their signal, evenly over all of them, and counts those
// that do not end then.
func (s *show) signal(ctx context.Context, shape *flowShape, books *flowBooks, line *flowLine) error {
	defer s.work(ctx, shape.name, s.Workers, books.handler())()
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(signalsAtOnce)
	line.Signalled = min(shape.workflows, signalled)
	for i := range line.Signalled {
		g.Go(func() error {
			id := flowPrefix + strconv.Itoa(i*(shape.workflows/line.Signalled))
			f := books.open(id, time.Now())
			if err := s.client.SignalWorkflow(within, shape.name, id, client.Signal{Name: "go"}); err != nil {
				return err
			}
			return f.wait(within)
		})
	}
	err := g.Wait()
	books.readWays(line)
	line.NeverEnded = books.unfinished()
	return err
}
