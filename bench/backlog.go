package bench

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
)

// backlogTasks is how many tasks backlog and restart preload by default.
const backlogTasks = 1_000_000

// A store has settled when its size moved by less than settleShare within
// settleEvery; one that never rests is measured after settleMost.
const (
	settleEvery = 2 * time.Second
	settleMost  = time.Minute
	settleShare = 0.002
)

// backlog measures what waiting tasks cost, and then how the other workloads
// run on top of them.
func (l *lab) backlog(ctx context.Context) error {
	if l.inst.StoreBytes == nil {
		return errors.New("backlog: the size of this store is not known; let the bench start the server and its store")
	}
	if err := l.weigh(ctx, l.o.backlog(backlogTasks)); err != nil {
		return err
	}
	if err := l.throughput(ctx); err != nil {
		return err
	}
	if err := l.lateness(ctx); err != nil {
		return err
	}
	return l.herd(ctx)
}

// weigh preloads n tasks and measures the bytes each takes. The first tenth is
// not weighed: buffers and caches that do not grow with the backlog fill then.
func (l *lab) weigh(ctx context.Context, n int) error {
	if err := l.warm(ctx); err != nil {
		return err
	}
	if err := l.host.pause(ctx); err != nil {
		return err
	}
	if _, err := l.preload(ctx, n/10); err != nil {
		return err
	}
	bytes, err := l.settled(ctx)
	if err != nil {
		return err
	}
	weighed, server, before := n-n/10, box.RSS(l.inst.Server), l.usage()
	sent, err := l.preload(ctx, weighed)
	if err != nil {
		return err
	}
	line := l.line("backlog", weighed)
	line.Mode = "batch"
	line.Seconds = result.Round(sent.to.Sub(sent.from).Seconds(), 3)
	line.EnqueuePerS = result.Round(sent.rate(weighed), 1)
	after, err := l.settled(ctx)
	if err != nil {
		return err
	}
	line.CPU, line.RSS = l.usage().Minus(before), l.memory()
	line.CPUPer100k = result.Round(line.CPU.Sum()/float64(weighed)*1e5, 3)
	line.StoreBytes = result.Round(float64(after-bytes)/float64(weighed), 1)
	line.ServerBytes = result.Round(float64(box.RSS(l.inst.Server)-server)/float64(weighed), 1)
	return l.emit(line)
}

// settled is the size of the store once it changes no more: logs are cut and
// files compacted in the background.
func (l *lab) settled(ctx context.Context) (int64, error) {
	deadline := time.Now().Add(settleMost)
	last, err := l.inst.StoreBytes(ctx)
	for err == nil {
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(settleEvery):
		}
		var now int64
		now, err = l.inst.StoreBytes(ctx)
		moved := float64(max(now-last, last-now))
		if moved <= settleShare*float64(last) || time.Now().After(deadline) {
			return now, err
		}
		last = now
	}
	return 0, err
}
