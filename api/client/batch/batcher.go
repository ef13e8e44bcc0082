package batch

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ddq-io/ddq/api/client"
)

// Config says when a Batcher sends. The zero value works.
type Config struct {
	// MaxTasks is how many tasks make a batch that is sent at once. Defaults to 512.
	MaxTasks int

	// MaxDelay is how long a task waits for a batch to fill. Defaults to 5ms.
	MaxDelay time.Duration

	// InFlight is how many batches may be unanswered; Add waits while there are
	// as many. Defaults to 4.
	InFlight int
}

func (c Config) withDefaults() Config {
	if c.MaxTasks <= 0 {
		c.MaxTasks = 512
	}
	if c.MaxDelay <= 0 {
		c.MaxDelay = 5 * time.Millisecond
	}
	if c.InFlight <= 0 {
		c.InFlight = 4
	}
	return c
}

// Enqueuer is what enqueues batches: a *client.Client, or a fake of a test.
type Enqueuer interface {
	// EnqueueBatch returns a result for each task, in order. Its error is that of one of them.
	EnqueueBatch(context.Context, []client.Task) ([]client.Result, error)
}

// errNoResult is what a task hears of which an Enqueuer said nothing.
var errNoResult = errors.New("the enqueuer gave no result")

// Batcher enqueues for one who does not want to wait for each task: Add
// returns at once, and the outcome goes to a function. Whoever has a goroutine
// for each task needs none; client.Client batches those by itself.
//
// It owns a goroutine for each batch in flight and one that waits to send the
// next, gone once Close returns. It is safe for
// concurrent use.
type Batcher struct {
	to     Enqueuer
	cfg    Config
	slots  chan struct{} // holds one value for each batch in flight
	flush  chan struct{} // holds a value while somebody takes all slots
	flying sync.WaitGroup

	mu     sync.Mutex
	tasks  []client.Task                 // the batch being filled; guarded by mu
	then   []func(client.Receipt, error) // for each of tasks; guarded by mu
	timer  *time.Timer                   // sends the batch when its oldest task has waited; guarded by mu
	closed bool                          // guarded by mu
}

// New returns a Batcher that enqueues to a client. Close it before the client.
func New(to Enqueuer, cfg Config) *Batcher {
	cfg = cfg.withDefaults()
	return &Batcher{to: to, cfg: cfg, slots: make(chan struct{}, cfg.InFlight), flush: make(chan struct{}, 1)}
}

// Add takes a task on its way. then, which may be nil, learns what became of
// it; it is called from another goroutine, must be quick and must not call the
// Batcher. Add waits while too much is in flight, and fails only when ctx ends
// meanwhile or after Close; then is not called then. The task's payload must
// not change until then is called.
func (b *Batcher) Add(ctx context.Context, task client.Task, then func(client.Receipt, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.tasks) >= b.cfg.MaxTasks && !b.closed {
		b.mu.Unlock()
		err := b.reserve(ctx)
		b.mu.Lock()
		if err != nil {
			return err
		}
		b.launch()
	}
	if b.closed {
		return client.ErrClosed
	}
	b.tasks, b.then = append(b.tasks, task), append(b.then, then)
	if len(b.tasks) == 1 {
		b.flying.Add(1)
		b.timer = time.AfterFunc(b.cfg.MaxDelay, func() {
			defer b.flying.Done()
			b.send()
		})
	}
	if len(b.tasks) == b.cfg.MaxTasks {
		select {
		case b.slots <- struct{}{}:
			b.launch()
		default: // the next Add, the timer or Flush waits for room
		}
	}
	return nil
}

// Flush sends what is waiting and returns when everything added so far has its
// outcome, or ctx ends.
func (b *Batcher) Flush(ctx context.Context) error {
	select {
	case b.flush <- struct{}{}: // two that have some slots each would wait for those of the other
		defer func() { <-b.flush }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := b.reserve(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	b.launch()
	b.mu.Unlock()
	// All slots together mean that nothing is in flight.
	taken := 0
	defer func() {
		for range taken {
			<-b.slots
		}
	}()
	for range b.cfg.InFlight {
		if err := b.reserve(ctx); err != nil {
			return err
		}
		taken++
	}
	return nil
}

// Close refuses more tasks, sends those that wait, and returns when each has
// its outcome. It may be called more than once.
func (b *Batcher) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.send()
	b.flying.Wait()
	return nil
}

// send sends what is waiting, once there is room in flight.
func (b *Batcher) send() {
	b.slots <- struct{}{}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.launch()
}

func (b *Batcher) reserve(ctx context.Context) error {
	select {
	case b.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// launch sends the batch in the slot that was reserved. mu is held.
func (b *Batcher) launch() {
	if len(b.tasks) == 0 {
		<-b.slots
		return
	}
	if b.timer.Stop() {
		b.flying.Done() // it will not run
	}
	tasks, then := b.tasks, b.then
	b.tasks, b.then = nil, nil
	b.flying.Go(func() {
		defer func() { <-b.slots }()
		results, err := b.to.EnqueueBatch(context.Background(), tasks) // each result has its error
		for i := range then {
			r := client.Result{Err: cmp.Or(err, errNoResult)}
			if i < len(results) {
				r = results[i]
			}
			if then[i] != nil {
				then[i](r.Receipt, r.Err)
			}
		}
	})
}
