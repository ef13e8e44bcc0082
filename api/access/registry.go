package access

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	lookEvery = time.Second
	// lookAgain is the least time between looks for tokens that are not known.
	lookAgain = 100 * time.Millisecond
	// staleAfter is how long what is known counts while the store is away.
	staleAfter = 10 * time.Minute
)

// registry is what this node knows of the records of the store: each kind has a learner, which is
// told all of them whenever something has changed.
type registry struct {
	records
	log      *slog.Logger
	learners []learner

	reading chan struct{} // holds one value during a look, which waits with a context
	change  int64         // of the store, as the learners know it; of whoever looks
	seen    atomic.Pointer[time.Time]
}

// learner knows the records of one kind.
type learner interface {
	kind() string
	// learn replaces what is known. It leaves out records that cannot be believed.
	learn(records []store.Record)
}

// adder is a learner that is told of one record by itself, as what else it knows is so still.
type adder interface {
	learner
	add(record store.Record)
}

func newRegistry(r records, log *slog.Logger) *registry {
	return &registry{records: r, log: log, reading: make(chan struct{}, 1)}
}

// lastSeen is when what the learners know was so; zero while they know nothing.
func (r *registry) lastSeen() time.Time {
	if seen := r.seen.Load(); seen != nil {
		return *seen
	}
	return time.Time{}
}

// look reads the records if some have changed.
func (r *registry) look(ctx context.Context) error {
	done, err := r.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	return r.lookNow(ctx)
}

// turn waits until nobody else reads the records.
func (r *registry) turn(ctx context.Context) (done func(), err error) {
	select {
	case r.reading <- struct{}{}:
		return func() { <-r.reading }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lookNow is look for whose turn it is.
func (r *registry) lookNow(ctx context.Context) error {
	asked := time.Now()
	change, err := r.RegistryChange(ctx)
	if err != nil {
		return err
	}
	if change == r.change && r.seen.Load() != nil {
		r.seen.Store(&asked)
		return nil
	}
	return r.readAll(ctx, asked)
}

// readAll reads every kind before the first learner is told, and notes when that was after the last:
// whoever sees the time finds what was known then.
func (r *registry) readAll(ctx context.Context, asked time.Time) error {
	all := make([][]store.Record, len(r.learners))
	first := int64(-1)
	for i, l := range r.learners {
		of, change, err := r.Records(ctx, l.kind())
		if err != nil {
			return err
		}
		if all[i] = of; first < 0 || change < first {
			first = change
		}
	}
	for i, l := range r.learners {
		l.learn(all[i])
	}
	r.change = first
	r.seen.Store(&asked)
	return nil
}

// wrote is look behind a write of this node. Where that was the only change since the last look, nothing is read: the
// version of a record is the number of the change that made it.
func (r *registry) wrote(ctx context.Context, record store.Record) error {
	done, err := r.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	i := slices.IndexFunc(r.learners, func(l learner) bool { return l.kind() == record.Kind })
	if r.seen.Load() == nil || record.Version != r.change+1 || i < 0 {
		return r.lookNow(ctx)
	}
	l, adds := r.learners[i].(adder)
	if !adds {
		return r.lookNow(ctx)
	}
	l.add(record)
	r.change = record.Version
	return nil
}

// lookFor looks for a token that is not known, unless another call has done so since. A token
// counts on every node once its maker has it, so nobody is refused by what an earlier look saw;
// but looks keep a distance, which is also what guessing has to wait.
func (r *registry) lookFor(ctx context.Context) error {
	asked := time.Now()
	done, err := r.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	seen := r.lastSeen()
	if seen.After(asked) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	if err := sleep(ctx, lookAgain-time.Since(seen)); err != nil {
		return err
	}
	return r.lookNow(ctx)
}

// changed is the end of every change of a token or a binding: it counts here at once.
func (r *registry) changed(ctx context.Context, err error) error {
	if err := changed(err); err != nil {
		return err
	}
	_ = r.look(ctx) // the next look sees it, too
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
