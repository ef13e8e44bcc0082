package runtime

import (
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

const (
	workflowsBytes = 32 << 20 // of all workflows that are remembered, about
	workflowBytes  = 8 << 20  // of one
	mostWorkflows  = 1 << 16
)

// Workflows are the open ones that looks of this node committed last, as they were stored by that. It
// is safe for concurrent use. Others may have changed them since: whoever takes one compares it with
// its header as it is.
type Workflows struct {
	*recent[workflowKey, *workflow.Stored]
}

// workflowKey is where the header of a workflow is.
type workflowKey struct {
	shard store.Shard
	cell  store.CellID
}

// NewWorkflows returns a memory of workflows that has none.
func NewWorkflows() *Workflows {
	return &Workflows{newRecent[workflowKey, *workflow.Stored](mostWorkflows, workflowsBytes, workflowBytes)}
}

// Known returns the workflow of a header, nil when it is not remembered. It is not to be changed.
func (w *Workflows) Known(at store.Shard, header store.CellID) *workflow.Stored {
	return w.get(workflowKey{at, header})
}

// Learn remembers a workflow, and may forget others.
func (w *Workflows) Learn(at store.Shard, s *workflow.Stored) {
	w.put(workflowKey{at, s.Cell.ID}, s, s.Size())
}

// Forget forgets a workflow.
func (w *Workflows) Forget(at store.Shard, header store.CellID) { w.forget(workflowKey{at, header}) }
