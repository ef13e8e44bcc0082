package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// A worker at one node that does not read, and the tasks in shards of both.
func TestTasksOfOtherNodesCountForTheStreamToo(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		time.Sleep(time.Second)
		slow := subscribeSlowly(t, a, subscription.Options{MaxInFlight: 1000, MaxBytes: 4 * mib}, 1000)
		const tasks = 60
		for i := range tasks {
			servicetest.EnqueueOne(t, a, service.NewTask{Topic: "t", When: service.When{Delay: time.Second},
				Task: store.Task{ID: fmt.Sprint(i), Payload: make([]byte, mib), Visibility: time.Hour}})
		}
		time.Sleep(time.Minute)
		most := int64(5*mib + mib/2)
		if got := slow.gather(); got < 4*mib || got > most {
			t.Errorf("%d bytes are unsent, want about 4 MiB", got)
		}
		slow.requireAll(tasks, most)
		time.Sleep(time.Second)
		for name, n := range f.Nodes {
			if left := n.Sys.Node().Unsent(); left != 0 {
				t.Errorf("%d bytes are counted at node %s after all was sent", left, name)
			}
		}
		if left := slow.Sub.Assigned(); left != 0 {
			t.Errorf("%d tasks count as assigned after all was sent", left)
		}
	})
}
