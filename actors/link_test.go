package actors_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store/place"
)

// A task that comes over a link and is of no shard that this node finds is dropped: its hold
// runs out at the other node, and the worker has its room back at once.
func TestTasksOfShardsThatNobodyKnowsKeepNoRoom(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		w := subscribeFew(t, f.Nodes["b"].Sys, "mail", 3)
		servicetest.Idle(time.Second)
		f.Edit(func() { f.Strange = true })
		for i := range 60 {
			servicetest.EnqueueOne(t, f.Nodes["a"].Sys, servicetest.After("mail", fmt.Sprint(i), 0))
		}
		seen := 0
		for round := range 60 {
			servicetest.Idle(2 * time.Second)
			for _, d := range w.Take() {
				w.Settle(subscription.SettleAck, d)
				_ = w.Sub.Grant(1)
				seen++
			}
			if round == 30 { // what this node owns is done
				f.Edit(func() { f.Strange = false })
			}
		}
		if seen < 60 {
			t.Errorf("%d of 60 tasks were delivered", seen)
		}
	})
}

// A task that comes over a link for a shard whose actor has just ended, as at the end of a reshard, does not
// keep the worker's room.
func TestTasksForShardsThatEndedKeepNoRoom(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		const room = 3
		w := subscribeFew(t, f.Nodes["b"].Sys, "mail", room)
		servicetest.Idle(time.Second)
		owners := f.Owners("mail")
		for n, owner := range owners {
			if owner == "a" {
				f.Nodes["b"].Sys.Node().StopShard("mail", n)
			}
		}
		for _, owner := range []string{"a", "b"} {
			for i, sent := 0, 0; sent < room; i++ {
				if id := fmt.Sprint(i); owners[place.ShardOf(id, len(owners))] == owner {
					servicetest.EnqueueOne(t, f.Nodes["a"].Sys, servicetest.After("mail", id, 0))
					sent++
				}
			}
			servicetest.Idle(time.Second)
		}
		if got := len(w.Take()); got != room {
			t.Errorf("%d tasks were delivered, want %d", got, room)
		}
	})
}
