package actors_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// A task is enqueued and moved to an earlier time, both at a node that does not own its shard,
// and the owner hears of the second before the first.
func TestNoticesInAnotherOrderMakeNoTaskLate(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		shard := store.Shard{Topic: "mail"}
		f.Limited("mail", service.TopicChange{Shards: new(1)})
		w := servicetest.Subscribe(t, f.Nodes["a"].Sys, "mail", 10)
		servicetest.EnqueueOne(t, f.Nodes["a"].Sys, servicetest.After("mail", "other", 2*time.Hour)) // an empty shard is read anew
		servicetest.Idle(3 * time.Second)
		owner, other := f.Nodes["a"], f.Nodes["b"]
		if f.Owners("mail")[0] == "b" {
			owner, other = other, owner
		}
		f.Edit(func() { f.Deaf = true })
		added := changed(t, f, shard, func() {
			servicetest.EnqueueOne(t, other.Sys, servicetest.After("mail", "x", time.Hour))
		})
		moved := changed(t, f, shard, func() {
			if _, err := other.Sys.Tasks.Reschedule(t.Context(), "mail", "x", service.When{Delay: 5 * time.Second}, 0); err != nil {
				t.Fatal(err)
			}
		})
		owner.Sys.Node().Peer().Notified(fleet.Notice{Pending: []fleet.PendingNotice{moved}})
		synctest.Wait()
		owner.Sys.Node().Peer().Notified(fleet.Notice{Pending: []fleet.PendingNotice{added}})
		servicetest.Idle(5 * time.Second)
		if got := w.Take(); len(got) != 1 {
			t.Errorf("%d tasks were delivered 6 s after the edit, want the one that was moved", len(got))
		}
	})
}

// changed is the notice of a call that makes a task of a shard pending, which is the first to be due.
func changed(t *testing.T, f *servicetest.Fleet, shard store.Shard, call func()) fleet.PendingNotice {
	t.Helper()
	call()
	stamp, tasks, err := f.Store.Window(t.Context(), shard, store.WindowQuery{To: store.MaxDue, Limit: 1})
	if err != nil || len(tasks) != 1 {
		t.Fatal(len(tasks), err)
	}
	return fleet.PendingNotice{Shard: shard, Seq: stamp.Seq, Tasks: tasks}
}
