//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
)

// What an edit of the storm came to.
const (
	stormChanged   = "changed"
	stormDelivered = "already delivered"
	stormGone      = "gone"
)

// stormEdit is one edit and its answer.
type stormEdit struct {
	op      string // update, promote, reschedule, delete
	payload string // update
	answer  string
	version int64 // changed, but for delete
}

// stormTask is the book of one task.
type stormTask struct {
	mu        sync.Mutex
	edits     []stormEdit
	delivered []worker.Task
}

// storm is many tasks that are due at one instant, and many who edit them just then.
type storm struct {
	*testing.T
	client *client.Client
	tasks  []*stormTask
	due    time.Time
}

const (
	stormTasks   = 150
	stormEditors = 6
	stormTopic   = "storm"
)

// TestStormOfEditsAtTheDueInstant: every answer is one of changed, already delivered and
// gone, and agrees with what the worker had in hand. Elsewhere such an edit is a delete and an
// insert (hibiken/asynq#568, timgit/pg-boss#426), and a revoked task may still run
// (celery/celery#1246).
func TestStormOfEditsAtTheDueInstant(t *testing.T) {
	n := startTestNode(t, nil)
	c, err := client.Dial(n.GRPCAddr(), client.Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &storm{T: t, client: c, tasks: make([]*stormTask, stormTasks)}
	for i := range s.tasks {
		s.tasks[i] = new(stormTask)
	}
	s.begin()
	stop := s.work()
	var editors sync.WaitGroup
	for k := range stormEditors {
		editors.Go(func() { s.edit(rand.New(rand.NewPCG(7, uint64(k)))) })
	}
	editors.Wait()
	s.await()
	stop()
	s.judge()
}

func (s *storm) begin() {
	s.due = time.Now().Add(time.Second)
	batch := make([]client.Task, stormTasks)
	for i := range batch {
		batch[i] = client.Task{Topic: stormTopic, ID: fmt.Sprint(i), Payload: []byte("first"), Due: s.due}
	}
	if _, err := s.client.EnqueueBatch(s.Context(), batch); err != nil {
		s.Fatal(err)
	}
}

// work takes down what is delivered, until the returned function is called. It has few
// tasks in hand at a time, so that the storm lasts as long as the editors take.
func (s *storm) work() (stop func()) {
	w := worker.New(s.client.Conn(), worker.Config{Topic: stormTopic, Concurrency: 2, MaxInFlight: 2}, worker.HandlerFunc(func(_ context.Context, t worker.Task) error {
		book := s.book(t.ID)
		book.mu.Lock()
		defer book.mu.Unlock()
		book.delivered = append(book.delivered, t)
		return nil
	}))
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			s.Error(err)
		}
	}
}

func (s *storm) book(id string) *stormTask {
	var i int
	if _, err := fmt.Sscan(id, &i); err != nil {
		s.Error(err)
	}
	return s.tasks[i]
}

// edit edits one task after the other, about when they are due.
func (s *storm) edit(r *rand.Rand) {
	time.Sleep(time.Until(s.due.Add(-50 * time.Millisecond)))
	for _, i := range r.Perm(stormTasks) {
		e := stormEdit{op: []string{"update", "update", "update", "promote", "reschedule", "delete"}[r.IntN(6)]}
		var receipt client.Receipt
		var err error
		switch id := fmt.Sprint(i); e.op {
		case "update":
			e.payload = fmt.Sprintf("%s-%d", id, r.Uint64())
			receipt, err = s.client.UpdateTask(s.Context(), stormTopic, id, client.Change{Payload: []byte(e.payload)})
		case "promote":
			receipt, err = s.client.PromoteTask(s.Context(), stormTopic, id, 0)
		case "reschedule":
			receipt, err = s.client.Reschedule(s.Context(), stormTopic, id, client.When{Due: s.due.Add(time.Duration(r.IntN(40)) * time.Millisecond)})
		case "delete":
			_, err = s.client.Delete(s.Context(), stormTopic, id)
		}
		switch {
		case err == nil:
			e.answer, e.version = stormChanged, receipt.Version
		case errors.Is(err, client.ErrPrecondition):
			e.answer = stormDelivered
		case errors.Is(err, client.ErrNotFound):
			e.answer = stormGone
		default:
			s.Errorf("%s of task %d: %v", e.op, i, err)
		}
		book := s.tasks[i]
		book.mu.Lock()
		book.edits = append(book.edits, e)
		book.mu.Unlock()
	}
}

// await returns once no task is left.
func (s *storm) await() {
	for {
		status, err := s.client.DescribeTopic(s.Context(), stormTopic)
		if err != nil {
			s.Fatal(err)
		}
		if d := status.Depth; d.Scheduled+d.Ready+d.Running == 0 {
			return
		}
		select {
		case <-s.Context().Done():
			s.Fatal("tasks are left")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// judge compares the books of each task with each other.
func (s *storm) judge() {
	answers := make(map[string]int)
	for i, book := range s.tasks {
		var changed []stormEdit
		deleted := 0
		for _, e := range book.edits {
			answers[e.answer]++
			switch {
			case e.answer != stormChanged:
			case e.op == "delete":
				deleted++
			default:
				changed = append(changed, e)
			}
		}
		if len(book.delivered)+deleted != 1 {
			s.Errorf("task %d: delivered %d times, deleted %d times", i, len(book.delivered), deleted)
			continue
		}
		slices.SortFunc(changed, func(a, b stormEdit) int { return int(a.version - b.version) })
		want := "first"
		for k, e := range changed {
			if e.version != int64(k+2) {
				s.Errorf("task %d: versions of the accepted edits are %+v", i, changed)
				break
			}
			if e.op == "update" {
				want = e.payload
			}
		}
		if deleted == 0 {
			s.judgeDelivery(i, book.delivered[0], int64(len(changed)+1), want)
		}
	}
	if answers[stormChanged] == 0 || answers[stormDelivered]+answers[stormGone] == 0 {
		s.Errorf("the storm missed the instant: %v", answers)
	}
	s.Logf("answers: %v", answers)
}

func (s *storm) judgeDelivery(i int, t worker.Task, version int64, payload string) {
	if t.Version != version || string(t.Payload) != payload {
		s.Errorf("task %d: delivered version %d with %q, and the last accepted edit made version %d with %q", i, t.Version, t.Payload, version, payload)
	}
}
