package cells

import (
	"context"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/store"
)

// Workflows remembers workflows as looks committed them, so that the next look need not decode them, nor
// read their pages. It is safe for concurrent use.
type Workflows interface {
	Known(at store.Shard, header store.CellID) *workflow.Stored // nil: not known
	Learn(at store.Shard, s *workflow.Stored)
	Forget(at store.Shard, header store.CellID)
}

// flowMemory is what a look does with workflows that are remembered.
type flowMemory struct{ *look }

// load returns workflows as their headers say: those that are known to be so, and the others as
// the store has them.
func (l flowMemory) load(ctx context.Context, headers []store.Cell) ([]access.Loaded, error) {
	loaded := make([]access.Loaded, len(headers))
	var others []store.Cell
	var at []int
	for i, c := range headers {
		if s := l.Workflows.Known(l.ID, c.ID); s != nil && s.Is(c, l.Progress.from) {
			loaded[i] = access.Loaded{Stored: s, Workflow: s.Workflow()}
			continue
		}
		others, at = append(others, c), append(at, i)
	}
	read, err := access.Load(ctx, l.Store, l.ID, others, l.Definitions)
	for k := range read {
		loaded[at[k]] = read[k]
	}
	return loaded, err
}

// remember keeps a workflow that was committed for the next look, until it has ended.
func (l flowMemory) remember(s *flowStep) {
	if s.after == nil || !s.after.Phase.Open() || s.out.Gone {
		l.Workflows.Forget(l.ID, s.header.ID)
		return
	}
	l.Workflows.Learn(l.ID, workflow.After(s.stored, s.after, &s.commit, l.Progress.from))
}
