package workflows

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	sdk "github.com/ddq-io/ddq/api/worker"
)

const (
	plainBatch   = 512
	plainsAtOnce = 8
)

// plain is what each of n tasks costs that are no steps, in microseconds of processor.
func (s *show) plain(ctx context.Context, n int) (perTask float64, err error) {
	const topic = "plain"
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	stop := s.work(ctx, topic, s.Workers, func(context.Context, sdk.Task) error {
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	})
	defer stop()
	before := s.usage()
	if err := s.enqueueAll(ctx, n, func(int) client.Task { return client.Task{Topic: topic} }); err != nil {
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
	return perUnit(s.usage().Minus(before), n), nil
}

// enqueueAll enqueues n tasks in batches.
func (s *show) enqueueAll(ctx context.Context, n int, of func(i int) client.Task) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(plainsAtOnce)
	for first := 0; first < n && within.Err() == nil; first += plainBatch {
		g.Go(func() error {
			tasks := make([]client.Task, min(plainBatch, n-first))
			for i := range tasks {
				tasks[i] = of(first + i)
			}
			_, err := s.client.EnqueueBatch(within, tasks)
			return err
		})
	}
	return g.Wait()
}
