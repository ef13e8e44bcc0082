package schedule

import (
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// A run that is a workflow begins in the commit that decides its occurrence: its cells lie in the
// shard of the schedule, since its id begins with the schedule's name. It tells its end by a parcel.

// bytesAStep bounds the definitions that one step puts, about.
const bytesAStep = 1 << 20

// madeEnough reports whether the runs of this step fill a commit.
func (p *step) madeEnough() bool {
	n := len(p.out.Make)
	if p.s.Workflow == nil {
		return n >= makesAStep
	}
	return n >= makesAStep || n > 0 && n*p.s.Workflow.Weight() >= bytesAStep
}

// RunID is the id of the task or the workflow that a run is.
func (s *Schedule) RunID(r Run) string { return s.idOf(r.Occurrence, r.Flow) }

// PastID is that of a run that has ended.
func (s *Schedule) PastID(h *Past) string { return s.idOf(h.Occurrence, h.Flow) }

// idOf makes the id of a workflow with part of the run's own: the same time may be of a trigger, or
// of a schedule that had the name before.
func (s *Schedule) idOf(o Occurrence, flow bool) string {
	id := s.ID(o)
	if !flow {
		return id
	}
	return workflow.RunID(s.Name, o.At, id[:8]+id[9:13])
}

// FlowIDBytes is by how much the id of a workflow is longer than the name of its schedule.
const FlowIDBytes = len("/20060102T150405Z@") + 12

// putFlow adds a workflow to a commit.
func (s *Schedule) putFlow(c *store.Commit, m *Make, now store.Millis) error {
	run := workflow.Run{Schedule: s.Name, ID: m.ID, Occurrence: m.At, Tells: !s.Untracked}
	puts, err := run.Begin(s.RunID(m.Run), s.Workflow, m.Due, now)
	c.Puts = append(c.Puts, puts...)
	return err
}

// FlowTasks is how many tasks a run begins with that is a workflow; 1 for any other.
func (s *Spec) FlowTasks() int64 {
	if s.Workflow == nil {
		return 1
	}
	return int64(s.Workflow.First())
}

func encodeFlow(d *graph.Definition) ([]byte, error) {
	if d == nil {
		return nil, nil
	}
	return d.Encode()
}

func (d *decoder) flow(b []byte) *graph.Definition {
	if len(b) == 0 {
		return nil
	}
	def, err := graph.DecodeDefinition(b)
	if err != nil {
		d.check(false, "%w", err)
	}
	return def
}
