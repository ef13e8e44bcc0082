package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
)

const (
	flowEnd      = time.Minute      // how long a workflow may take
	ackedWithin  = 10 * time.Second // how long after the last handler its workflow may go on
	flowPrefix   = "flow-"          // of the ids of workflows, but those of the warm-up
	flowsAtOnce  = 64               // submits of workflows that nobody waits for
	plainBatch   = 512
	plainsAtOnce = 8

	// killedHold is how long a hold lasts where the server is killed: what was on its way to a worker
	// comes again after it.
	killedHold = time.Second
)

// workflowShow is a server with workflows, and what its workers saw.
type workflowShow struct {
	*workflowOptions
	server *ddqServer
	disk   []*box.Process
	client *client.Client
}

func newWorkflowShow(o *workflowOptions, s *ddqServer, disk []*box.Process) (*workflowShow, error) {
	c, err := client.Dial(s.grpcAddr, client.Config{Timeout: adminTimeout})
	if err != nil {
		return nil, err
	}
	return &workflowShow{workflowOptions: o, server: s, disk: disk, client: c}, nil
}

func (s *workflowShow) play(ctx context.Context, shape workflowShape, line *workflowLine) error {
	line.Workflows, line.Open, line.Steps = shape.workflows, shape.open, shape.tasks
	if shape.tasks == 0 {
		return s.weigh(ctx, &shape, line)
	}
	books := newWorkflowBooks(&shape)
	handle := func(_ context.Context, t sdk.Task) error {
		if t.Step == nil {
			return nil
		}
		books.begin(&t, time.Now())
		err := shape.handle(&t)
		books.end(&t, time.Now())
		return err
	}
	defer s.work(ctx, shape.name, handle)()
	if shape.away != "" {
		defer s.work(ctx, shape.away, handle)()
	}
	if err := s.warm(ctx, &shape); err != nil {
		return err
	}
	begun, before := time.Now(), s.usage()
	if err := s.submitAll(ctx, &shape, books); err != nil {
		return err
	}
	line.CPU = s.usage().Minus(before)
	books.read(line, begun)
	line.CPUPerStep = result.Round(line.CPU.Sum()/float64(books.ends())*1e6, 1)
	if err := s.count(ctx, &shape, line); err != nil || !shape.against {
		return err
	}
	var err error
	line.CPUPerTask, err = s.plain(ctx, shape.workflows*shape.tasks)
	return err
}

// usage is what every party used up to now.
func (s *workflowShow) usage() result.Roles {
	return result.Roles{Client: box.OwnCPU(), Server: cpu([]*box.Process{s.server.process}), Store: cpu(s.disk)}
}

// work begins workers, and returns what stops them.
func (s *workflowShow) work(ctx context.Context, topic string, handle sdk.HandlerFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	cfg := sdk.Config{Topic: topic, Concurrency: 64}
	if s.Kill {
		cfg.VisibilityTimeout = killedHold
	}
	var all sync.WaitGroup
	for range s.Workers {
		all.Go(func() { _ = sdk.New(s.client.Conn(), cfg, handle).Run(ctx) }) // it ends with ctx
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// warm has some workflows go before those that are measured. Nothing is written down of them.
func (s *workflowShow) warm(ctx context.Context, shape *workflowShape) error {
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
func (s *workflowShow) submitAll(ctx context.Context, shape *workflowShape, books *workflowBooks) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(shape.open)
	for i := 0; i < shape.workflows && within.Err() == nil; i++ {
		if shape.kill && i == shape.workflows/2 {
			g.Go(func() error { return s.kill(within) })
		}
		g.Go(func() error {
			w := shape.workflow
			w.ID = flowPrefix + strconv.Itoa(i)
			f := books.open(w.ID, time.Now())
			if _, err := s.client.Submit(within, w); err != nil {
				return err
			}
			late := time.NewTimer(flowEnd)
			defer late.Stop()
			select {
			case <-f.done:
			case <-late.C:
			case <-within.Done():
			}
			return within.Err()
		})
	}
	return g.Wait()
}

// kill kills the server and starts it again.
func (s *workflowShow) kill(ctx context.Context) error {
	if _, err := s.server.restart(ctx, func() {}); err != nil {
		return err
	}
	return s.server.waitReady(ctx)
}

// count counts the workflows that have not ended, or are not there.
func (s *workflowShow) count(ctx context.Context, shape *workflowShape, line *workflowLine) error {
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
		if err := pause(ctx, time.Second/4); err != nil {
			return err
		}
	}
}

// plain is what each of n tasks costs that are no steps, in microseconds of processor.
func (s *workflowShow) plain(ctx context.Context, n int) (perTask float64, err error) {
	const topic = "plain"
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	stop := s.work(ctx, topic, func(context.Context, sdk.Task) error {
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	})
	defer stop()
	before := s.usage()
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(plainsAtOnce)
	for first := 0; first < n && within.Err() == nil; first += plainBatch {
		g.Go(func() error {
			tasks := make([]client.Task, min(plainBatch, n-first))
			for i := range tasks {
				tasks[i].Topic = topic
			}
			_, err := s.client.EnqueueBatch(within, tasks)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, fmt.Errorf("plain tasks: %w", err)
	}
	late := time.NewTimer(flowEnd)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		return 0, fmt.Errorf("plain tasks: %d of %d did not come", left.Load(), n)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return result.Round(s.usage().Minus(before).Sum()/float64(n)*1e6, 1), nil
}

// weigh submits workflows that wait, and says what each of them takes.
func (s *workflowShow) weigh(ctx context.Context, shape *workflowShape, line *workflowLine) error {
	weigh := s.server.storeBytes(s.Store)
	if weigh == nil {
		weigh = func(context.Context) (int64, error) { return 0, nil }
	}
	servers := []*box.Process{s.server.process}
	before, err := weigh(ctx)
	if err != nil {
		return err
	}
	memory, begun := rss(servers), time.Now()
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(flowsAtOnce)
	for i := 0; i < shape.workflows && within.Err() == nil; i++ {
		g.Go(func() error {
			w := shape.workflow
			w.ID = flowPrefix + strconv.Itoa(i)
			_, err := s.client.Submit(within, w)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	line.Open = shape.workflows
	line.Seconds = result.Round(time.Since(begun).Seconds(), 3)
	line.WorkflowsPerS = result.Round(float64(shape.workflows)/time.Since(begun).Seconds(), 1)
	after, err := weigh(ctx)
	line.StoreBytes = result.Round(float64(after-before)/float64(shape.workflows), 1)
	line.ServerBytes = result.Round(float64(rss(servers)-memory)/float64(shape.workflows), 1)
	return errors.Join(err, ctx.Err())
}
