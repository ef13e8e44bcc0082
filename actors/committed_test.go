package actors_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// A run has the id of its occurrence: one that a user's call took back is made anew by the next look,
// and the node may hear of that first.
func TestTaskMadeAnewBeforeItsEndIsHeardOfComesInTime(t *testing.T) {
	servicetest.Bubble(t, actors.Config{WatchdogInterval: time.Hour, Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "other", time.Hour))
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "run", time.Second))
		ref, _ := s.Node().Topics().Opened("mail")
		n := place.ShardOf("run", 1)
		ref.Committed(n, &store.Commit{Removes: []store.Remove{{ID: "run"}}}, store.Stamp{Seq: 1}) // before the second call
		time.Sleep(2 * time.Second)
		if got := w.Take(); len(got) != 1 || got[0].Task.ID != "run" {
			t.Errorf("%d deliveries two seconds later, want that of the run", len(got))
		}
	})
}

// A user may delete a task and enqueue it again under its id, and the node hear of the deletion last.
func TestTaskEnqueuedAgainBeforeItsDeletionIsHeardOfComesInTime(t *testing.T) {
	servicetest.Bubble(t, actors.Config{WatchdogInterval: time.Hour, Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "again", time.Second))
		shard := store.Shard{Topic: "mail", N: place.ShardOf("again", 1)}
		stamp, _, err := s.Node().Store().Remove(t.Context(), shard, store.Removals("again"))
		if err != nil {
			t.Fatal(err)
		}
		servicetest.EnqueueOne(t, s, servicetest.After("mail", "again", time.Second))
		ref, _ := s.Node().Topics().Opened("mail")
		ref.Deleted(shard.N, stamp.Seq, "again")
		time.Sleep(2 * time.Second)
		if got := w.Take(); len(got) != 1 || got[0].Task.ID != "again" {
			t.Errorf("%d deliveries two seconds later, want that of the task", len(got))
		}
	})
}
