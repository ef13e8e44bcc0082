package servicetest

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

func (g *gatedStore) Reserve(ctx context.Context, asked []store.Reservation) ([]store.Tokens, error) {
	g.LimitCalls.Add(1)
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Store.Reserve(ctx, asked)
}

func (g *gatedStore) Take(ctx context.Context, q *store.Take) (*store.TakeReply, error) {
	if g.NoTake.Load() {
		return nil, store.ErrNoTake
	}
	g.LimitCalls.Add(1)
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Store.Take(ctx, q)
}

// OnAcquire has a function called before each call that asks for permits, with the first of their keys; nil: none.
func (g *gatedStore) OnAcquire(call func(key string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.acquiring = call
}

func (g *gatedStore) Acquire(ctx context.Context, asked []store.Acquire) ([]store.Acquired, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	g.mu.Lock()
	call := g.acquiring
	g.mu.Unlock()
	if call != nil {
		call(asked[0].Key.Key)
	}
	return g.Store.Acquire(ctx, asked)
}

// OnMove has a function called before each call that moves permits; with its error the answer is lost. nil: none.
func (g *gatedStore) OnMove(call func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.moved = call
}

func (g *gatedStore) Move(ctx context.Context, permits []store.Permit) error {
	if err := g.pass(ctx); err != nil {
		return err
	}
	g.mu.Lock()
	call := g.moved
	g.mu.Unlock()
	var lost error
	if call != nil {
		lost = call()
	}
	if err := g.Store.Move(ctx, permits); err != nil {
		return err
	}
	return lost
}

func (g *gatedStore) Free(ctx context.Context, permits []store.Permit) ([][]string, error) {
	if err := g.pass(ctx); err != nil {
		return nil, err
	}
	return g.Store.Free(ctx, permits)
}

// Hire subscribes workers, each at another node in turn.
func (f *Fleet) Hire(topic string, n, credit int, names ...string) *crew {
	f.Helper()
	c := &crew{T: f.T, held: map[string]time.Time{}, Acked: map[string]bool{}, Dead: map[*Node]bool{}}
	for i := range n {
		at := f.Nodes[names[i%len(names)]]
		c.workers = append(c.workers, &crewman{Stream: Subscribe(f.T, at.Sys, topic, credit), at: at})
	}
	time.Sleep(200 * time.Millisecond) // until every node has claimed its shards
	synctest.Wait()
	return c
}

// Run has the workers work for a while.
func (c *crew) Run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, w := range c.workers {
			if !c.Dead[w.at] {
				c.work(w)
			}
		}
	}
}

func (c *crew) work(w *crewman) {
	now := time.Now()
	for _, d := range w.Take() {
		r := run{Delivery: d, ends: now}
		if c.Lasts != nil {
			r.ends = now.Add(c.Lasts())
		}
		w.running = append(w.running, r)
		c.Got = append(c.Got, now)
		c.held[d.Task.ID] = d.Deadline.Time()
	}
	c.count(now)
	w.running = slices.DeleteFunc(w.running, func(r run) bool {
		if r.ends.After(now) {
			return false
		}
		w.Settle(subscription.SettleAck, r.Delivery)
		delete(c.held, r.Task.ID) // asked for; it may take a moment
		return true
	})
	for _, s := range w.TakeSettled() {
		if s.Err == nil {
			c.Acked[s.ID] = true
		}
		_ = w.Sub.Grant(1)
	}
}

// count counts the holds that are valid.
func (c *crew) count(now time.Time) {
	valid := 0
	for _, until := range c.held {
		if until.After(now) {
			valid++
		}
	}
	c.Most = max(c.Most, valid)
}

// Within returns the most deliveries in any window of a length.
func (c *crew) Within(window time.Duration) (most int) {
	slices.SortFunc(c.Got, time.Time.Compare)
	first := 0
	for i, at := range c.Got {
		for at.Sub(c.Got[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// Limited creates a topic.
func (f *Fleet) Limited(name string, c service.TopicChange) {
	f.Helper()
	if _, err := f.Nodes["a"].Sys.Topics.Create(f.Context(), name, c); err != nil {
		f.Fatal(err)
	}
}

func (f *Fleet) Backlog(topic string, n int, edit func(i int, t *service.NewTask)) {
	f.Helper()
	for from := 0; from < n; from += 1000 {
		tasks := make([]service.NewTask, min(1000, n-from))
		for i := range tasks {
			tasks[i] = After(topic, fmt.Sprintf("t-%06d", from+i), 0)
			if edit != nil {
				edit(from+i, &tasks[i])
			}
		}
		results, err := f.Nodes["a"].Sys.Tasks.Enqueue(f.Context(), tasks)
		if err != nil || results[0].Err != nil {
			f.Fatal(err, results[0].Err)
		}
	}
}
