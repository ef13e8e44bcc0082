package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// Each node counts the cells of its shards, so that the sum of a fleet's is all of them, and
// follows what becomes of them.
func TestNodesCountCells(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		sys := f.Nodes["a"].Sys
		for i := range 20 {
			n := schedules.Definition{Topic: "report", Name: fmt.Sprint(i), Paused: i%4 == 0, Spec: schedule.Spec{
				Timetable: timetable.Spec{Entries: []timetable.Entry{{Every: time.Hour}}},
				Template:  schedule.Template{Task: store.Task{MaxRetries: -1}},
			}}
			if _, err := sys.Schedules.Put(t.Context(), n, nil); err != nil {
				t.Fatal(err)
			}
		}
		servicetest.Idle(40 * time.Second)
		if got := fmt.Sprint(f.Gauges("ddq_schedules", "state")); got != "map[active:15 paused:5]" {
			t.Errorf("schedules %s", got)
		}
		if got := fmt.Sprint(f.Gauges("ddq_cells", "kind")); got != "map[schedule:20 tally:0 walk:0 workflow:0]" {
			t.Errorf("cells %s", got)
		}
		if got := fmt.Sprint(f.Gauges("ddq_parcels_waiting", "box")); got != "map[in:0 out:0]" {
			t.Errorf("parcels %s", got)
		}
		for i := range 3 {
			if _, err := sys.Schedules.Delete(t.Context(), "report", fmt.Sprint(i), schedules.Deletion{}); err != nil {
				t.Fatal(err)
			}
		}
		servicetest.Idle(40 * time.Second)
		if got := fmt.Sprint(f.Gauges("ddq_schedules", "state")); got != "map[active:13 paused:4]" {
			t.Errorf("schedules once some are deleted: %s", got)
		}
	})
}
