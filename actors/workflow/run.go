package workflow

import (
	"strings"

	"github.com/ddq-io/ddq/actors/workflow/cell"
	"github.com/ddq-io/ddq/store"
)

// Run is the run of a schedule that a workflow is of: it begins with the workflow, and is over
// when that has ended. The two share the message of the end and nothing else.
type Run struct {
	Schedule   string
	ID         string // by what the schedule knows it
	Occurrence store.Millis
	Tells      bool // of its end
}

// runMark is in the last part of the id of a workflow that a schedule starts, and in no child's: no
// step has it in its name.
const runMark = "@"

// RunID is the id of a workflow that a schedule starts for a time; unique tells it from others of
// that time. It lies where the schedule does, since it begins with the same name.
func RunID(schedule string, at store.Millis, unique string) string {
	return schedule + "/" + at.Time().UTC().Format("20060102T150405Z") + runMark + unique
}

// Root is the workflow that a workflow is below of, itself if it is nobody's child.
func Root(id string) (root string, isRoot bool) {
	parts := strings.SplitN(id, "/", 3)
	n := 1
	if len(parts) > 1 && strings.Contains(parts[1], runMark) {
		n = 2
	}
	return strings.Join(parts[:n], "/"), len(parts) == n
}

// early reports whether a workflow is put, and its time has not come.
func (w *Workflow) early(now store.Millis) bool { return w.Run != nil && now < w.Started }

// ofTask is what the task of a step says of the run.
func (r *Run) ofTask() *store.RunOf {
	if r == nil {
		return nil
	}
	return &store.RunOf{Schedule: r.Schedule, Occurrence: r.Occurrence}
}

// quiet is the run as a child knows it.
func (r *Run) quiet() *Run {
	if r == nil {
		return nil
	}
	return &Run{Schedule: r.Schedule, Occurrence: r.Occurrence}
}

func (r *Run) encode() *cell.Run {
	if r == nil {
		return nil
	}
	return &cell.Run{Schedule: r.Schedule, Id: r.ID, Occurrence: int64(r.Occurrence), Tells: r.Tells}
}

func decodeRun(c *cell.Run) *Run {
	if c == nil {
		return nil
	}
	return &Run{Schedule: c.Schedule, ID: c.Id, Occurrence: store.Millis(c.Occurrence), Tells: c.Tells}
}
