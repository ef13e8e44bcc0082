package workflows

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
	"github.com/ddq-io/ddq/bench/testbed"
)

const (
	adminTimeout = time.Minute
	flowEnd      = time.Minute      // how long a workflow may take
	ackedWithin  = 10 * time.Second // how long after the last handler its workflow may go on
	flowPrefix   = "flow-"          // of the ids of workflows, but those of the warm-up
	handlers     = 64               // at a time, of a worker

	// killedHold is how long a hold lasts where the server is killed: what was in flight to a worker
	// comes again after it.
	killedHold = time.Second
)

// show is servers with workflows, and what its workers saw.
type show struct {
	*options
	fleet  testbed.Fleet
	client *client.Client
}

func newShow(o *options, fleet testbed.Fleet) (*show, error) {
	c, err := client.Dial(fleet.Addrs(), client.Config{Timeout: adminTimeout})
	if err != nil {
		return nil, err
	}
	return &show{options: o, fleet: fleet, client: c}, nil
}

// play plays a shape.
func (s *show) play(ctx context.Context, name string) (outcome, error) {
	switch name {
	case shapeFollow:
		return s.follow(ctx)
	case shapeJournal:
		return s.journal(ctx)
	case shapeWait:
		return s.weigh(ctx)
	}
	return s.flow(ctx, s.shape(name))
}

// line is what the lines of workflows have in common.
func (s *show) line(shape *flowShape) *flowLine {
	return &flowLine{
		Shape: shape.name, Store: s.Store, Workflows: shape.workflows, Open: shape.open, Rate: shape.rate, Steps: shape.tasks, Machine: result.Machine(),
	}
}

// flow plays workflows of a shape until they have ended.
func (s *show) flow(ctx context.Context, shape flowShape) (*flowLine, error) {
	line, books := s.line(&shape), newFlowBooks(&shape)
	handle := books.handler()
	defer s.work(ctx, shape.name, s.Workers, handle)()
	if shape.away != "" {
		defer s.work(ctx, shape.away, s.Workers, handle)()
	}
	if err := s.warm(ctx, &shape); err != nil {
		return nil, err
	}
	begun, before := time.Now(), s.usage()
	if err := s.submitAll(ctx, &shape, books); err != nil {
		return nil, err
	}
	line.CPU = s.usage().Minus(before)
	books.read(line, begun)
	line.CPUPerStep = perUnit(line.CPU, books.ends())
	if err := s.count(ctx, &shape, line); err != nil {
		return nil, err
	}
	if err := s.fleet.Revive(ctx); err != nil || !shape.against {
		return line, err
	}
	var err error
	line.CPUPerTask, err = s.plain(ctx, shape.workflows*shape.tasks)
	return line, err
}

// perUnit is what each of n units took of the processor, in microseconds.
func perUnit(used result.Roles, n int) float64 { return result.Round(used.Sum()/float64(n)*1e6, 1) }

// usage is what every party used up to now.
func (s *show) usage() result.Roles {
	return result.Roles{Client: box.OwnCPU(), Server: box.CPU(s.fleet.Processes()), Store: box.CPU(s.fleet[0].Disk)}
}

// work begins workers, and returns what stops them.
func (s *show) work(ctx context.Context, topic string, workers int, handle sdk.HandlerFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	cfg := sdk.Config{Topic: topic, Concurrency: handlers}
	if s.Kill {
		cfg.VisibilityTimeout = killedHold
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { _ = sdk.New(s.client.Conn(), cfg, handle).Run(ctx) }) // it ends with ctx
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// warm has some workflows go before those that are measured. Nothing is written down of them.
func (s *show) warm(ctx context.Context, shape *flowShape) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(shape.open)
	for i := range min(shape.open, max(1, shape.workflows/10)) {
		g.Go(func() error {
			w := shape.workflow
			w.ID = "warm-" + strconv.Itoa(i)
			if _, err := s.client.Submit(within, w); err != nil {
				return err
			}
			_, err := s.client.WaitWorkflow(within, w.Topic, w.ID, flowEnd)
			return err
		})
	}
	return g.Wait()
}

// submitAll submits the workflows of a shape, so many at a time as it says, and waits until the
// handlers of each have ended, or it has taken too long.
func (s *show) submitAll(ctx context.Context, shape *flowShape, books *flowBooks) error {
	begun := time.Now()
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(shape.open)
	for i := 0; i < shape.workflows && within.Err() == nil; i++ {
		if shape.kill && i == shape.workflows/2 {
			g.Go(func() error { return s.fleet.Kill(within) })
		}
		if err := shape.pace(within, begun, i); err != nil {
			break
		}
		g.Go(func() error {
			w := shape.workflow
			w.ID = flowPrefix + strconv.Itoa(i)
			f := books.open(w.ID, time.Now())
			if _, err := s.client.Submit(within, w); err != nil {
				return err
			}
			return f.wait(within)
		})
	}
	return g.Wait()
}

// pace waits for the moment of a submit. One that is late comes at once, so that the steps of all
// together keep their rate.
func (s *flowShape) pace(ctx context.Context, begun time.Time, i int) error {
	if s.rate == 0 {
		return nil
	}
	return testbed.Pause(ctx, time.Until(begun.Add(time.Duration(i*s.tasks)*time.Second/time.Duration(s.rate))))
}

// count counts the workflows that have not ended, or are not there.
func (s *show) count(ctx context.Context, shape *flowShape, line *flowLine) error {
	for deadline := time.Now().Add(ackedWithin); ; {
		line.NeverEnded = shape.workflows
		for w, err := range s.client.ListWorkflows(ctx, client.WorkflowFilter{Topic: shape.name}) {
			if err != nil {
				return err
			}
			if w.State.Ended() && strings.HasPrefix(w.ID, flowPrefix) {
				line.NeverEnded--
			}
		}
		if line.NeverEnded == 0 || time.Now().After(deadline) {
			return nil
		}
		if err := testbed.Pause(ctx, time.Second/4); err != nil {
			return err
		}
	}
}
