package storm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

const (
	topic = "storm"
	// lead is the time for each task to be enqueued before all are due.
	lead = 20 * time.Microsecond
	// near is how far from the task that was delivered last those are that are edited.
	near = 80
	// handlers is how many tasks the worker has in hand at a time.
	handlers      = 64
	progressEvery = 15 * time.Second
	// hold is how long a worker may keep a task.
	hold = 30 * time.Second
)

// Options say how hard it blows.
type Options struct {
	Tasks   int
	Edits   int
	Editors int // calls at a time
	Seed    uint64
	Log     io.Writer // told how far it is
}

// storm is one of them.
type storm struct {
	Options
	clockOf
	client *client.Client
	books  []book
	due    time.Time
	calls  atomic.Uint64
	made   atomic.Int64 // edits so far
	front  atomic.Int64 // the farthest task that was delivered

	mu   sync.Mutex
	turn sync.Cond // made has grown
}

func newStorm(c *client.Client, o Options) *storm {
	s := &storm{Options: o, clockOf: clockOf{time.Now()}, client: c, books: make([]book, o.Tasks)}
	s.turn.L = &s.mu
	return s
}

// Blow plays a storm against a server and judges it.
func Blow(ctx context.Context, addr string, o Options) (*Report, error) {
	c, err := client.Dial(addr, client.Config{Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s := newStorm(c, o)
	keep := hold
	if _, err := c.CreateTopic(ctx, topic, client.Policy{VisibilityTimeout: &keep}); err != nil {
		return nil, err
	}
	if err := s.enqueue(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	work := s.worker()
	var running errgroup.Group
	running.Go(func() error { return work.Run(ctx) })
	took, err := s.edit(ctx)
	if err == nil {
		err = s.await(ctx)
	}
	cancel()
	if err = errors.Join(err, running.Wait()); err != nil {
		return nil, err
	}
	return s.judge(took), nil
}

// enqueue makes all tasks, due at one instant.
func (s *storm) enqueue(ctx context.Context) error {
	s.due = time.Now().Add(time.Second + time.Duration(s.Tasks)*lead).Truncate(time.Millisecond)
	const size = 1000
	for from := 0; from < s.Tasks; from += size {
		batch := make([]client.Task, min(size, s.Tasks-from))
		for i := range batch {
			batch[i] = client.Task{Topic: topic, ID: name(from + i), Payload: payload(0), Due: s.due}
		}
		asked := s.since()
		results, err := s.client.EnqueueBatch(ctx, batch)
		if err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
		for i, r := range results {
			b := &s.books[from+i]
			b.created, b.due = span{asked, s.since()}, r.Due.UnixMilli()
		}
	}
	return nil
}

// name is the id of a task: their order is that of the tasks.
func name(i int) string { return fmt.Sprintf("%08d", i) }

// edit makes all edits, from shortly before the instant on, and returns how long it took.
func (s *storm) edit(ctx context.Context) (time.Duration, error) {
	select {
	case <-time.After(time.Until(s.due) - 50*time.Millisecond):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	began := time.Now()
	defer s.tellProgress()()
	group, ctx := errgroup.WithContext(ctx)
	for k := range s.Editors {
		r := rand.New(rand.NewPCG(s.Seed, uint64(k)))
		group.Go(func() error {
			for n := k; n < s.Edits; n += s.Editors {
				if err := ctx.Err(); err != nil {
					return err
				}
				s.one(ctx, r, n)
				s.made.Add(1)
				s.announce()
			}
			return nil
		})
	}
	err := group.Wait()
	s.made.Store(int64(s.Edits)) // who waits for more need not
	s.announce()
	return time.Since(began), err
}

// tellProgress tells how many edits were made, until the returned function is called.
func (s *storm) tellProgress() (stop func()) {
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(s.Log, "%d of %d edits\n", s.made.Load(), s.Edits)
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-told
	}
}

// announce wakes those who wait for their turn.
func (s *storm) announce() {
	s.mu.Lock() // or one that has just looked would miss it
	defer s.mu.Unlock()
	s.turn.Broadcast()
}

// one edits a task that is being delivered, or about to be.
func (s *storm) one(ctx context.Context, r *rand.Rand, n int) {
	i := max(0, min(s.Tasks-1, int(s.front.Load())+r.IntN(2*near)-near))
	e := edit{}
	switch k := r.IntN(100); {
	case k < 5:
		e.op = remove
	case k < 20:
		e.op = promote
	case k < 40:
		e.op = move
		e.asked = time.Now().Add(time.Duration(r.IntN(20)) * time.Millisecond).UnixMilli()
	default:
		e.op, e.payload = update, uint32(n+1)
	}
	e.from = s.since()
	receipt, err := s.call(ctx, name(i), &e)
	e.to = s.since()
	switch reason := reasonOf(err); {
	case err == nil:
		e.answer, e.version = changed, int32(receipt.Version)
		if e.op != remove && e.op != update {
			e.answered = receipt.Due.UnixMilli()
		}
	case reason == ledger.Running || reason == ledger.Finished:
		e.answer = delivered
	case reason == ledger.NoTask:
		e.answer = gone
	default:
		e.answer = unclear
	}
	b := &s.books[i]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.edits = append(b.edits, e)
}

func (s *storm) call(ctx context.Context, id string, e *edit) (client.Receipt, error) {
	switch e.op {
	case promote:
		return s.client.PromoteTask(ctx, topic, id, 0)
	case move:
		return s.client.Reschedule(ctx, topic, id, client.When{Due: time.UnixMilli(e.asked)})
	case remove:
		_, err := s.client.Delete(ctx, topic, id)
		return client.Receipt{}, err
	case update, ops:
	}
	return s.client.UpdateTask(ctx, topic, id, client.Change{Payload: payload(e.payload)})
}

func reasonOf(err error) string {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// worker takes the tasks. Some of them fail once, so that they are edited between two
// attempts.
func (s *storm) worker() *worker.Worker {
	return worker.New(tap.New(s.client.Conn(), topic, s), worker.Config{
		Topic: topic, Concurrency: handlers, MaxInFlight: handlers, Name: "worker", Logger: slog.New(slog.DiscardHandler),
	}, worker.HandlerFunc(func(ctx context.Context, t worker.Task) error {
		i, err := strconv.Atoi(t.ID)
		if err != nil {
			return err
		}
		s.advance(int64(i))
		s.awaitTurn(int64(i))
		if t.Attempt == 1 && i%10 == 0 {
			return worker.RetryAfter(10*time.Millisecond, errors.New("once more"))
		}
		return nil
	}))
}

// advance notes that a task was delivered.
func (s *storm) advance(i int64) {
	for {
		front := s.front.Load()
		if i <= front || s.front.CompareAndSwap(front, i) {
			return
		}
	}
}

// awaitTurn waits until the editors have come as far as a task is.
func (s *storm) awaitTurn(i int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for share := i * int64(s.Edits) / int64(s.Tasks); s.made.Load() < share; {
		s.turn.Wait()
	}
}

// await returns when no task is left.
func (s *storm) await(ctx context.Context) error {
	for {
		t, err := s.client.DescribeTopic(ctx, topic)
		if err != nil {
			return err
		}
		if t.Depth.Scheduled+t.Depth.Ready+t.Depth.Running == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Append files what the worker had and said. It implements tap.Log.
func (s *storm) Append(events ...ledger.Event) {
	at := s.since()
	for _, e := range events {
		i, err := strconv.Atoi(e.Task)
		if err != nil || i < 0 || i >= len(s.books) {
			continue // no task of this storm: missed by the judge
		}
		b := &s.books[i]
		b.mu.Lock()
		b.hands = append(b.hands, s.event(at, e))
		b.mu.Unlock()
	}
}

// NextCall implements tap.Log.
func (s *storm) NextCall() uint64 { return s.calls.Add(1) }
