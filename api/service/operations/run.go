package operations

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// run is an operation that runs here.
type run struct {
	*Operations
	ctx  context.Context
	stop context.CancelCauseFunc

	mu sync.Mutex
	o  *Operation // guarded by mu; its version is the teller's
}

func newRun(s *Operations, o *Operation) *run {
	r := &run{Operations: s, o: o}
	r.ctx, r.stop = context.WithCancelCause(s.ctx)
	return r
}

// run does the work, and tells how it ended.
func (r *run) run(spec *Spec) {
	defer r.stop(nil)
	var telling sync.WaitGroup
	told := make(chan struct{})
	telling.Go(func() { r.tell(told) })
	err := r.work(spec)
	close(told)
	telling.Wait()
	r.conclude(err)
}

// work waits for its turn and does what is to be done.
func (r *run) work(spec *Spec) error {
	select {
	case r.room <- struct{}{}:
		defer func() { <-r.room }()
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
	r.change(func(o *Operation) { o.State, o.Began = Running, r.now() })
	pace := rate.NewLimiter(rate.Inf, 1)
	if spec.Rate > 0 {
		pace = rate.NewLimiter(rate.Limit(spec.Rate), MaxRate)
		pace.AllowN(time.Now(), MaxRate) // nothing is saved up
	}
	handled := int64(0)
	err := spec.Act(r.ctx, func(p Progress) error {
		r.change(func(o *Operation) { o.Progress = p })
		n := p.Changed + p.Skipped - handled
		handled += n
		return pace.WaitN(r.ctx, int(min(n, MaxRate)))
	})
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx) // whatever the work made of it
	}
	return err
}

func (r *run) change(f func(o *Operation)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.o)
}

// tell writes each second how far the work is, and hears whether it is to stop, until told ends.
func (r *run) tell(told <-chan struct{}) {
	every := time.NewTicker(beat)
	defer every.Stop()
	for {
		select {
		case <-told:
			return
		case <-every.C:
		}
		if err := r.write(r.ctx); err != nil && r.ctx.Err() == nil {
			r.log.Warn("how far an operation is cannot be written", "id", r.o.ID, "err", err)
		}
	}
}

// write writes the operation as it is now over what others made of its record, who only ask it to stop.
func (r *run) write(ctx context.Context) error {
	for range changes {
		r.mu.Lock()
		now := *r.o
		r.mu.Unlock()
		now.Seen = r.now()
		err := r.Operations.write(ctx, &now)
		if err == nil {
			r.change(func(o *Operation) { o.version, o.Seen = now.version, now.Seen })
			return nil
		}
		if !errors.Is(err, store.ErrVersion) {
			return err
		}
		if err := r.hear(ctx); err != nil {
			return err
		}
	}
	return store.ErrUnavailable
}

// hear reads what others made of the record.
func (r *run) hear(ctx context.Context) error {
	o, err := r.Get(ctx, r.o.Topic, r.o.ID)
	if err != nil {
		return err
	}
	r.change(func(mine *Operation) { mine.version, mine.Stopping = o.version, o.Stopping })
	if o.Stopping {
		r.stop(errStopped)
	}
	return nil
}

// conclude writes how the work ended.
func (r *run) conclude(err error) {
	r.change(func(o *Operation) {
		o.Ended = r.now()
		switch {
		case err == nil:
			o.State = Done
		case errors.Is(err, errStopped):
			o.State = Stopped
		case errors.Is(err, errNodeGone):
			o.State = BrokenOff
		default:
			e := problem.FromStore(err)
			o.State, o.Failure = Failed, &Failure{e.Reason, e.Message}
		}
	})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), lastWords)
	defer cancel()
	if err := r.write(ctx); err != nil {
		r.log.Warn("the end of an operation cannot be written; it will look broken off", "id", r.o.ID, "state", r.o.State, "err", err)
	}
}
