package service_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
)

func payload(text string) service.TaskChange {
	return service.TaskChange{Fields: service.FieldPayload, Task: store.Task{Payload: []byte(text)}}
}

// TestUpdateChangesContentsAndDueTimeAtOnce is what riverqueue/river#123 and
// timgit/pg-boss#399 ask for: other arguments and another time without a delete
// and an insert, between which hibiken/asynq#568 may lose the task.
func TestUpdateChangesContentsAndDueTimeAtOnce(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Minute))
		c := service.TaskChange{
			Fields: service.FieldPayload | service.FieldAttributes | service.FieldWhen | service.FieldExpiry, When: service.When{Delay: time.Second}, ExpireAfter: time.Hour,
			Task: store.Task{Payload: []byte("other"), Attributes: []store.Attribute{{Key: "k", Value: "v"}}},
		}
		done, err := s.Tasks.Update(t.Context(), "", "a", c, 1)
		if err != nil || done.Topic != "mail" || done.Version != 2 || time.Until(done.Due.Time()) > time.Second+time.Millisecond {
			t.Fatalf("update: %+v, %v", done, err)
		}
		time.Sleep(1100 * time.Millisecond)
		d := w.TakeOne()
		if string(d.Task.Payload) != "other" || len(d.Task.Attributes) != 1 || d.Task.Version() != 2 || d.Task.Expires != done.Due.Add(time.Hour) {
			t.Errorf("delivered %+v", d.Task)
		}
		w.Settle(subscription.SettleAck, d)
		if time.Sleep(2 * time.Minute); len(w.Take()) != 0 {
			t.Error("delivered again at the time of before")
		}
	})
}

// TestPromotedTaskRunsNow also where another node owns the shard: asked for in
// felixmosh/bull-board#1389 and sidekiq/sidekiq#645.
func TestPromotedTaskRunsNow(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
		w := servicetest.Subscribe(t, a, "mail", 100)
		for i := range 20 {
			id := fmt.Sprint(i)
			servicetest.EnqueueOne(t, b, servicetest.After("mail", id, time.Hour)) // beyond what owners keep in memory
			if _, err := b.Tasks.Promote(t.Context(), "mail", id, 1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
		if got := w.Take(); len(got) != 20 {
			t.Errorf("%d of 20 promoted tasks were delivered", len(got))
		}
	})
}

// TestRaisedPriorityOvertakes also when the task stands in line already.
func TestRaisedPriorityOvertakes(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 0)
		for i := range 20 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), 0))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		c := service.TaskChange{Fields: service.FieldPriority, Task: store.Task{Traits: &store.Traits{Priority: 9}}}
		if _, err := s.Tasks.Update(t.Context(), "mail", "17", c, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.Sub.Grant(1)
		if d := w.TakeOne(); d.Task.ID != "17" || d.Task.Traits == nil || d.Task.Traits.Priority != 9 {
			t.Errorf("the first is %+v", d.Task)
		}
		w.Sub.Grant(30)
		time.Sleep(10 * time.Millisecond)
		if got := w.Take(); len(got) != 19 {
			t.Errorf("%d more were delivered, want 19", len(got))
		}
		if f, err := s.Tasks.Get(t.Context(), "mail", "17"); err != nil || f.Attempt != 1 {
			t.Errorf("the task of high priority: %+v, %v", f, err)
		}
	})
}

// TestRescheduleStopsAtTheExpiry moves tasks to where they would expire before a worker
// gets them.
func TestRescheduleStopsAtTheExpiry(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		for _, id := range []string{"one", "many"} {
			task := servicetest.After("mail", id, 10*time.Second)
			task.ExpireAfter = time.Minute
			servicetest.EnqueueOne(t, s, task)
		}
		_, err := s.Tasks.Reschedule(t.Context(), "mail", "one", service.When{Delay: time.Hour}, 0)
		if e := new(problem.Error); !errors.As(err, &e) || e.Kind != problem.Invalid || e.Reason != "BAD_TIME" || e.Field != "expire_time" {
			t.Errorf("reschedule past the expiry: %v", err)
		}
		b := service.Bulk{Topic: "mail", Filter: service.TaskFilter{States: []store.State{store.StateScheduled}}}
		var last service.Progress
		if err := s.Bulk.Reschedule(t.Context(), b, service.Shift{By: time.Hour}, func(p service.Progress) error { last = p; return nil }); err != nil {
			t.Fatal(err)
		}
		if last.Matched != 2 || last.Changed != 0 || last.Skipped != 2 {
			t.Errorf("reschedule of all past the expiry: %+v", last)
		}
		time.Sleep(11 * time.Second)
		if got := w.Take(); len(got) != 2 {
			t.Errorf("%d tasks were delivered at their time, want 2", len(got))
		}
	})
}

func TestEditsAreRefused(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 0)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "waits", time.Hour))
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "runs", 0))
		w.Sub.Grant(1)
		running := w.TakeOne()
		if _, err := s.Tasks.Update(t.Context(), "mail", "waits", payload("second"), 0); err != nil {
			t.Fatal(err)
		}
		large := payload(string(make([]byte, 2<<20)))
		weight := service.TaskChange{Fields: service.FieldFairnessWeight, Task: store.Task{Traits: &store.Traits{FairnessWeight: 2}}}
		late := service.TaskChange{Fields: service.FieldExpiry, Task: store.Task{Expires: store.Millis(time.Now().UnixMilli())}}
		for _, c := range []struct {
			edit   func() (service.Edited, error)
			kind   problem.Kind
			reason string
			field  string
		}{
			{func() (service.Edited, error) { return s.Tasks.Update(t.Context(), "mail", "waits", payload("x"), 1) }, problem.Aborted, "VERSION_MISMATCH", "if_version"},
			{func() (service.Edited, error) { return s.Tasks.Update(t.Context(), "mail", "waits", payload("x"), 9) }, problem.Aborted, "VERSION_MISMATCH", "if_version"},
			{func() (service.Edited, error) { return s.Tasks.Promote(t.Context(), "mail", "waits", 1) }, problem.Aborted, "VERSION_MISMATCH", "if_version"},
			{func() (service.Edited, error) {
				return s.Tasks.Reschedule(t.Context(), "mail", "waits", service.When{}, 3)
			}, problem.Aborted, "VERSION_MISMATCH", "if_version"},
			{func() (service.Edited, error) { return s.Tasks.Update(t.Context(), "mail", "runs", payload("x"), 0) }, problem.Precondition, "TASK_RUNNING", "id"},
			{func() (service.Edited, error) { return s.Tasks.Update(t.Context(), "mail", "runs", payload("x"), 7) }, problem.Precondition, "TASK_RUNNING", "id"},
			{func() (service.Edited, error) { return s.Tasks.Promote(t.Context(), "mail", "runs", 0) }, problem.Precondition, "TASK_RUNNING", "id"},
			{func() (service.Edited, error) { return s.Tasks.Update(t.Context(), "mail", "none", payload("x"), 0) }, problem.NotFound, "NO_TASK", "id"},
			{func() (service.Edited, error) { return s.Tasks.Promote(t.Context(), "", "none", 0) }, problem.NotFound, "NO_TASK", "id"},
			{func() (service.Edited, error) { return s.Tasks.Update(t.Context(), "none", "a", payload("x"), 0) }, problem.NotFound, "NO_TOPIC", "topic"},
			{func() (service.Edited, error) {
				return s.Tasks.Update(t.Context(), "mail", "waits", service.TaskChange{}, 0)
			}, problem.Invalid, "BAD_MASK", "update_mask"},
			{func() (service.Edited, error) { return s.Tasks.Update(t.Context(), "mail", "waits", large, 0) }, problem.Invalid, "PAYLOAD_TOO_LARGE", "payload"},
			{func() (service.Edited, error) { return s.Tasks.Update(t.Context(), "mail", "waits", late, 0) }, problem.Invalid, "BAD_TIME", "expire_time"},
			{func() (service.Edited, error) { return s.Tasks.Update(t.Context(), "mail", "waits", weight, 0) }, problem.Invalid, "BAD_KEY", "fairness_weight"},
			{func() (service.Edited, error) { return s.Tasks.Promote(t.Context(), "mail", "waits", -1) }, problem.Invalid, "OUT_OF_RANGE_FIELD", "if_version"},
		} {
			done, err := c.edit()
			var e *problem.Error
			if !errors.As(err, &e) || e.Kind != c.kind || e.Reason != c.reason || e.Field != c.field {
				t.Errorf("got %+v, %v; want %s of %s", done, err, c.reason, c.field)
			}
			if e != nil && e.Kind == problem.Aborted && e.Version != 2 {
				t.Errorf("version told is %d, want 2", e.Version)
			}
		}
		if f, err := s.Tasks.Get(t.Context(), "mail", "waits"); err != nil || string(f.Payload) != "second" || f.Version() != 2 {
			t.Errorf("after the refusals: %+v, %v", f, err)
		}
		w.Settle(subscription.SettleAck, running)
	})
}

// TestConcurrentUpdatesLoseNothing: each changes something else of the same task.
func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Hour))
		changes := []service.TaskChange{
			payload("other"),
			{Fields: service.FieldAttributes, Task: store.Task{Attributes: []store.Attribute{{Key: "k", Value: "v"}}}},
			{Fields: service.FieldMaxRetries, Task: store.Task{MaxRetries: 7}},
			{Fields: service.FieldVisibility, Task: store.Task{Visibility: time.Hour}},
		}
		const rounds = 25
		var wg sync.WaitGroup
		for _, c := range changes {
			wg.Go(func() {
				for range rounds {
					if _, err := s.Tasks.Update(t.Context(), "mail", "a", c, 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		f, err := s.Tasks.Get(t.Context(), "mail", "a")
		if err != nil || string(f.Payload) != "other" || len(f.Attributes) != 1 || f.Task.MaxRetries != 7 || f.Visibility != time.Hour {
			t.Errorf("got %+v, %v", f, err)
		}
		if want := int64(1 + rounds*len(changes)); f.Version() != want {
			t.Errorf("version is %d, want %d", f.Version(), want)
		}
	})
}

// forgetful is a store that makes edits and loses the first answer.
type forgetful struct {
	store.Store
	mu    sync.Mutex
	lose  int    // answers; guarded by mu, as is the rest
	then  func() // what happens before the next try
	skip  bool   // what is not answered is not made, either
	edits int
}

func (f *forgetful) Edit(ctx context.Context, s store.Shard, edits []store.Edit) (store.Stamp, []store.EditResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.edits++
	var stamp store.Stamp
	var results []store.EditResult
	var err error
	if !f.skip || f.lose == 0 {
		stamp, results, err = f.Store.Edit(ctx, s, edits)
	}
	if f.lose == 0 {
		return stamp, results, err
	}
	f.lose--
	if f.then != nil {
		f.then()
	}
	return store.Stamp{}, nil, store.ErrUnknown
}

// TestLostAnswersOfEdits: the task tells whether an edit of a version was made.
func TestLostAnswersOfEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &forgetful{Store: memstore.New()}
		s, begin := servicetest.New(actors.Config{}, st)
		if err := begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			s.Node().Stop(context.Background())
			time.Sleep(5 * time.Second)
		}()
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "a", time.Hour))
		st.lose = 1
		if done, err := s.Tasks.Update(t.Context(), "mail", "a", payload("one"), 1); err != nil || done.Version != 2 {
			t.Errorf("update with a lost answer: %+v, %v", done, err)
		}
		st.lose = 1
		if done, err := s.Tasks.Update(t.Context(), "mail", "a", payload("two"), 0); err != nil || done.Version != 3 {
			t.Errorf("update of any version with a lost answer: %+v, %v", done, err)
		}
		shard := place.Candidates(topicConfig(t, s, "mail"), "a")[0]
		st.lose, st.then = 1, func() { // somebody else is faster
			if _, _, err := st.Store.Remove(t.Context(), shard, store.Removals("a")); err != nil {
				t.Error(err)
			}
		}
		if done, err := s.Tasks.Update(t.Context(), "mail", "a", payload("three"), 3); servicetest.ReasonOf(err) != "AMBIGUOUS" {
			t.Errorf("update of a task that went with the answer: %+v, %v", done, err)
		}
		if st.edits != 6 {
			t.Errorf("%d edits went to the store, want two for each", st.edits)
		}
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "b", time.Hour))
		place := place.Candidates(topicConfig(t, s, "mail"), "b")[0]
		st.lose, st.then = 1, func() { // and the promotion did not reach the store
			if _, _, err := st.Store.Edit(t.Context(), place, []store.Edit{{ID: "b", Due: s.Node().Clock().Millis().Add(time.Hour)}}); err != nil {
				t.Error(err)
			}
		}
		st.skip = true
		if done, err := s.Tasks.Promote(t.Context(), "mail", "b", 1); servicetest.ReasonOf(err) != "AMBIGUOUS" {
			t.Errorf("promotion after a lost answer and another edit: %+v, %v", done, err)
		}
	})
}

func topicConfig(t *testing.T, s *service.Service, name string) *store.Topic {
	t.Helper()
	ref, err := s.Node().Topics().Open(t.Context(), name, false)
	if err != nil {
		t.Fatal(err)
	}
	return ref.Config()
}
