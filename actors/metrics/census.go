package metrics

import "github.com/ddq-io/ddq/store"

// Census is what was counted of cells and parcels.
type Census struct {
	Schedules map[ScheduleState]int64
	Kinds     map[string]int64 // cells, by the names of CellKinds
	In, Out   int64            // parcels that wait
}

// ScheduleState is what schedules are counted by.
type ScheduleState struct{ Topic, State string }

// CellKinds are the kinds of cells that are counted.
var CellKinds = [...]struct {
	Kind byte
	Name string
}{{store.CellSchedule, "schedule"}, {store.CellWalk, "walk"}, {store.CellWorkflow, "workflow"}, {store.CellTally, "tally"}}

// NewCensus returns one that has counted nothing.
func NewCensus() Census {
	return Census{Schedules: make(map[ScheduleState]int64), Kinds: make(map[string]int64)}
}

// Show sets the gauges to what was counted.
func (s *Schedules) Show(c *Census) {
	s.schedules.Reset()
	for of, n := range c.Schedules {
		s.schedules.WithLabelValues(of.Topic, of.State).Set(float64(n))
	}
	for _, kind := range CellKinds {
		s.cells.WithLabelValues(kind.Name).Set(float64(c.Kinds[kind.Name]))
	}
	s.parcels.WithLabelValues("in").Set(float64(c.In))
	s.parcels.WithLabelValues("out").Set(float64(c.Out))
}
