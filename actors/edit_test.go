package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// reasonOf is the reason of an error that System returned, "" without one.
func reasonOf(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Reason
}

func payload(text string) TaskChange {
	return TaskChange{Fields: FieldPayload, Task: store.Task{Payload: []byte(text)}}
}

// TestUpdateChangesContentsAndDueTimeAtOnce is what riverqueue/river#123 and
// timgit/pg-boss#399 ask for: other arguments and another time without a delete
// and an insert, between which hibiken/asynq#568 may lose the task.
func TestUpdateChangesContentsAndDueTimeAtOnce(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 10)
		enqueueOne(t, s, after("mail", "a", time.Minute))
		c := TaskChange{
			Fields: FieldPayload | FieldAttributes | FieldWhen | FieldExpiry, When: When{Delay: time.Second}, ExpireAfter: time.Hour,
			Task: store.Task{Payload: []byte("other"), Attributes: []store.Attribute{{Key: "k", Value: "v"}}},
		}
		done, err := s.Update(t.Context(), "", "a", c, 1)
		if err != nil || done.Topic != "mail" || done.Version != 2 || time.Until(done.Due.Time()) > time.Second+time.Millisecond {
			t.Fatalf("update: %+v, %v", done, err)
		}
		time.Sleep(1100 * time.Millisecond)
		d := w.takeOne()
		if string(d.Task.Payload) != "other" || len(d.Task.Attributes) != 1 || d.Task.Version() != 2 || d.Task.Expires != done.Due.Add(time.Hour) {
			t.Errorf("delivered %+v", d.Task)
		}
		w.settle(SettleAck, d)
		if time.Sleep(2 * time.Minute); len(w.take()) != 0 {
			t.Error("delivered again at the time of before")
		}
	})
}

// TestPromotedTaskRunsNow also where another node owns the shard: asked for in
// felixmosh/bull-board#1389 and sidekiq/sidekiq#645.
func TestPromotedTaskRunsNow(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		a, b := f.nodes["a"].sys, f.nodes["b"].sys
		w := subscribeTo(t, a, "mail", 100)
		for i := range 20 {
			id := fmt.Sprint(i)
			enqueueOne(t, b, after("mail", id, time.Hour)) // beyond what owners keep in memory
			if _, err := b.Promote(t.Context(), "mail", id, 1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
		if got := w.take(); len(got) != 20 {
			t.Errorf("%d of 20 promoted tasks were delivered", len(got))
		}
	})
}

// TestRaisedPriorityOvertakes also when the task stands in line already.
func TestRaisedPriorityOvertakes(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 0)
		for i := range 20 {
			enqueueOne(t, s, after("mail", fmt.Sprint(i), 0))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		c := TaskChange{Fields: FieldPriority, Task: store.Task{Traits: &store.Traits{Priority: 9}}}
		if _, err := s.Update(t.Context(), "mail", "17", c, 0); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.sub.Grant(1)
		if d := w.takeOne(); d.Task.ID != "17" || d.Task.Traits == nil || d.Task.Traits.Priority != 9 {
			t.Errorf("the first is %+v", d.Task)
		}
		w.sub.Grant(30)
		time.Sleep(10 * time.Millisecond)
		if got := w.take(); len(got) != 19 {
			t.Errorf("%d more were delivered, want 19", len(got))
		}
		if f, err := s.Get(t.Context(), "mail", "17"); err != nil || f.Attempt != 1 {
			t.Errorf("the task of high priority: %+v, %v", f, err)
		}
	})
}

func TestEditsAreRefused(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		w := subscribeTo(t, s, "mail", 0)
		enqueueOne(t, s, after("mail", "waits", time.Hour))
		enqueueOne(t, s, after("mail", "runs", 0))
		w.sub.Grant(1)
		running := w.takeOne()
		if _, err := s.Update(t.Context(), "mail", "waits", payload("second"), 0); err != nil {
			t.Fatal(err)
		}
		large := payload(string(make([]byte, 2<<20)))
		weight := TaskChange{Fields: FieldFairnessWeight, Task: store.Task{Traits: &store.Traits{FairnessWeight: 2}}}
		late := TaskChange{Fields: FieldExpiry, Task: store.Task{Expires: store.Millis(time.Now().UnixMilli())}}
		for _, c := range []struct {
			edit   func() (Edited, error)
			kind   Kind
			reason string
			field  string
		}{
			{func() (Edited, error) { return s.Update(t.Context(), "mail", "waits", payload("x"), 1) }, Aborted, "VERSION_MISMATCH", "if_version"},
			{func() (Edited, error) { return s.Update(t.Context(), "mail", "waits", payload("x"), 9) }, Aborted, "VERSION_MISMATCH", "if_version"},
			{func() (Edited, error) { return s.Promote(t.Context(), "mail", "waits", 1) }, Aborted, "VERSION_MISMATCH", "if_version"},
			{func() (Edited, error) { return s.Reschedule(t.Context(), "mail", "waits", When{}, 3) }, Aborted, "VERSION_MISMATCH", "if_version"},
			{func() (Edited, error) { return s.Update(t.Context(), "mail", "runs", payload("x"), 0) }, Precondition, "TASK_RUNNING", "id"},
			{func() (Edited, error) { return s.Update(t.Context(), "mail", "runs", payload("x"), 7) }, Precondition, "TASK_RUNNING", "id"},
			{func() (Edited, error) { return s.Promote(t.Context(), "mail", "runs", 0) }, Precondition, "TASK_RUNNING", "id"},
			{func() (Edited, error) { return s.Update(t.Context(), "mail", "none", payload("x"), 0) }, NotFound, "NO_TASK", "id"},
			{func() (Edited, error) { return s.Promote(t.Context(), "", "none", 0) }, NotFound, "NO_TASK", "id"},
			{func() (Edited, error) { return s.Update(t.Context(), "none", "a", payload("x"), 0) }, NotFound, "NO_TOPIC", "topic"},
			{func() (Edited, error) { return s.Update(t.Context(), "mail", "waits", TaskChange{}, 0) }, Invalid, "BAD_MASK", "update_mask"},
			{func() (Edited, error) { return s.Update(t.Context(), "mail", "waits", large, 0) }, Invalid, "PAYLOAD_TOO_LARGE", "payload"},
			{func() (Edited, error) { return s.Update(t.Context(), "mail", "waits", late, 0) }, Invalid, "BAD_TIME", "expire_time"},
			{func() (Edited, error) { return s.Update(t.Context(), "mail", "waits", weight, 0) }, Invalid, "BAD_KEY", "fairness_weight"},
			{func() (Edited, error) { return s.Promote(t.Context(), "mail", "waits", -1) }, Invalid, "OUT_OF_RANGE_FIELD", "if_version"},
		} {
			done, err := c.edit()
			var e *Error
			if !errors.As(err, &e) || e.Kind != c.kind || e.Reason != c.reason || e.Field != c.field {
				t.Errorf("got %+v, %v; want %s of %s", done, err, c.reason, c.field)
			}
			if e != nil && e.Kind == Aborted && e.Version != 2 {
				t.Errorf("version told is %d, want 2", e.Version)
			}
		}
		if f, err := s.Get(t.Context(), "mail", "waits"); err != nil || string(f.Payload) != "second" || f.Version() != 2 {
			t.Errorf("after the refusals: %+v, %v", f, err)
		}
		w.settle(SettleAck, running)
	})
}

// TestConcurrentUpdatesLoseNothing: each changes something else of the same task.
func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		enqueueOne(t, s, after("mail", "a", time.Hour))
		changes := []TaskChange{
			payload("other"),
			{Fields: FieldAttributes, Task: store.Task{Attributes: []store.Attribute{{Key: "k", Value: "v"}}}},
			{Fields: FieldMaxRetries, Task: store.Task{MaxRetries: 7}},
			{Fields: FieldVisibility, Task: store.Task{Visibility: time.Hour}},
		}
		const rounds = 25
		var wg sync.WaitGroup
		for _, c := range changes {
			wg.Go(func() {
				for range rounds {
					if _, err := s.Update(t.Context(), "mail", "a", c, 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		f, err := s.Get(t.Context(), "mail", "a")
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
		s := New(Config{}, st, slog.New(slog.DiscardHandler), nil)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			s.Stop(context.Background())
			time.Sleep(5 * time.Second)
		}()
		enqueueOne(t, s, after("mail", "a", time.Hour))
		st.lose = 1
		if done, err := s.Update(t.Context(), "mail", "a", payload("one"), 1); err != nil || done.Version != 2 {
			t.Errorf("update with a lost answer: %+v, %v", done, err)
		}
		st.lose = 1
		if done, err := s.Update(t.Context(), "mail", "a", payload("two"), 0); err != nil || done.Version != 3 {
			t.Errorf("update of any version with a lost answer: %+v, %v", done, err)
		}
		shard := placesOf(s.topicConfig(t, "mail"), "a")[0]
		st.lose, st.then = 1, func() { // somebody else is faster
			if _, _, err := st.Store.Remove(t.Context(), shard, []string{"a"}); err != nil {
				t.Error(err)
			}
		}
		if done, err := s.Update(t.Context(), "mail", "a", payload("three"), 3); reasonOf(err) != "AMBIGUOUS" {
			t.Errorf("update of a task that went with the answer: %+v, %v", done, err)
		}
		if st.edits != 6 {
			t.Errorf("%d edits went to the store, want two for each", st.edits)
		}
		enqueueOne(t, s, after("mail", "b", time.Hour))
		place := placesOf(s.topicConfig(t, "mail"), "b")[0]
		st.lose, st.then = 1, func() { // and the promotion did not reach the store
			if _, _, err := st.Store.Edit(t.Context(), place, []store.Edit{{ID: "b", Due: s.clock.millis().Add(time.Hour)}}); err != nil {
				t.Error(err)
			}
		}
		st.skip = true
		if done, err := s.Promote(t.Context(), "mail", "b", 1); reasonOf(err) != "AMBIGUOUS" {
			t.Errorf("promotion after a lost answer and another edit: %+v, %v", done, err)
		}
	})
}

func (s *System) topicConfig(t *testing.T, name string) *store.Topic {
	t.Helper()
	ref, err := s.topic(t.Context(), name, false)
	if err != nil {
		t.Fatal(err)
	}
	return ref.config.Load()
}
