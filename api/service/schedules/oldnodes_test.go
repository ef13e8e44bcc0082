package schedules_test

import (
	"testing"
	"testing/synctest"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/servicetest"
)

// TestSchedulesWaitForOldNodes has one in the fleet that would tell no schedule of the ends of
// tasks: what is there stays as it is, and nothing is put.
func TestSchedulesWaitForOldNodes(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		synctest.Wait()
		s := f.Nodes["a"].Sys
		put(t, s, scheduled("before", cron("0 9 * * *")))
		f.Nodes["a"].ShowOld("b")
		for name, entry := range map[string]string{"new": "0 9 * * *", "before": "0 10 * * *"} {
			_, err := s.Schedules.Put(t.Context(), scheduled(name, cron(entry)), nil)
			if e := problem.FromStore(err); e == nil || e.Reason != "OLD_NODES" || e.Kind != problem.Precondition {
				t.Errorf("%s: %v", name, err)
			}
		}
		put(t, s, scheduled("before", cron("0 9 * * *"))) // which changes nothing
		f.Nodes["a"].Show(nil)
		put(t, s, scheduled("new", cron("0 9 * * *")))
	})
}
