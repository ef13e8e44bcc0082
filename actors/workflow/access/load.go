package access

import (
	"context"
	"errors"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// Reader reads cells.
type Reader interface {
	Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error)
}

// Definitions are those that are known, by the lives of their workflows. They never change.
type Definitions interface {
	Known(life uint64) *graph.Definition // nil: not known
	Learn(life uint64, d *graph.Definition)
}

// Loaded is a workflow as it was read. Err wraps cell.ErrCorrupt.
type Loaded struct {
	*workflow.Stored
	Workflow *workflow.Workflow
	Err      error
}

// Load reads what belongs to headers. Those of which something changed meanwhile may be
// corrupt: a look at the header again says so.
func Load(ctx context.Context, r Reader, s store.Shard, headers []store.Cell, known Definitions) ([]Loaded, error) {
	loaded, needs, ids := make([]Loaded, len(headers)), make([]int, len(headers)), []store.CellID(nil)
	defs := make([]*graph.Definition, len(headers)) // as they are known now: to learn one may be to forget another
	for i := range headers {
		l := &loaded[i]
		if l.Stored, l.Err = workflow.Read(headers[i]); l.Err != nil {
			continue
		}
		defs[i] = known.Known(l.Life())
		more := l.Needs(defs[i])
		needs[i], ids = len(more), append(ids, more...)
	}
	cells, err := readAll(ctx, r, s, ids)
	if err != nil {
		return nil, err
	}
	for i := range loaded {
		l := &loaded[i]
		if l.Err != nil {
			continue
		}
		l.Workflow, l.Err = l.Fill(cells[:needs[i]], defs[i])
		if cells = cells[needs[i]:]; l.Err == nil {
			known.Learn(l.Life(), l.Workflow.Def)
		}
	}
	return loaded, nil
}

// readAll reads cells, however many calls that takes.
func readAll(ctx context.Context, r Reader, s store.Shard, ids []store.CellID) (all []store.Cell, err error) {
	for len(all) < len(ids) {
		cells, err := r.Cells(ctx, s, ids[len(all):])
		if err != nil {
			return nil, err
		}
		all = append(all, cells...)
	}
	return all, nil
}

// Values reads the parts that go into the tasks of a step.
func Values(ctx context.Context, r Reader, s store.Shard, w *workflow.Workflow, parts []int64) (workflow.Values, error) {
	ids := make([]store.CellID, len(parts))
	for i, n := range parts {
		ids[i] = w.PartID(n)
	}
	cells, err := readAll(ctx, r, s, ids)
	if err != nil {
		return nil, err
	}
	values := make(workflow.Values, len(parts))
	for i := range cells {
		values[parts[i]] = cells[i].Body
	}
	return values, nil
}

// none knows no definition.
type none struct{}

func (none) Known(uint64) *graph.Definition  { return nil }
func (none) Learn(uint64, *graph.Definition) {}

// located is a workflow and where it was read.
type located struct {
	Loaded
	header
}

// header is the header of a workflow as it was read.
type header struct {
	shard store.Shard
	cell  store.Cell
	from  uint64 // the server that it was read from, see store.Commit
}

// find reads a workflow, with all that belongs to it.
func (a *Access) find(ctx context.Context, topic *store.Topic, id string) (*located, error) {
	for range tries {
		h, err := a.header(ctx, topic, id)
		if err != nil {
			return nil, err
		}
		loaded, err := Load(ctx, a.Store, h.shard, []store.Cell{h.cell}, none{})
		if err != nil {
			return nil, err
		}
		again, err := a.header(ctx, topic, id)
		if err != nil {
			return nil, err
		}
		if again.cell.Version != h.cell.Version {
			continue // it was read while it changed
		}
		return &located{loaded[0], h}, loaded[0].Err
	}
	return nil, busy(id)
}

// header reads the header of a workflow: of the generations of shards the one that has it.
func (a *Access) header(ctx context.Context, topic *store.Topic, id string) (header, error) {
	for _, shard := range workflow.Shards(topic, id) {
		from := a.Store.Server(ctx, shard)
		cells, err := a.Store.Cells(ctx, shard, []store.CellID{workflow.CellID(id)})
		if err != nil {
			return header{}, err
		}
		if cells[0].Version != 0 {
			return header{shard, cells[0], from}, nil
		}
	}
	return header{}, notFound(id)
}

func notFound(id string) error {
	return &refusal.Error{Reason: refusal.NoWorkflow, Field: "id", Message: "no workflow " + id}
}

func busy(id string) error {
	return &refusal.Error{Reason: refusal.WorkflowBusy, Field: "id", Message: "workflow " + id + " is changed by others all the time"}
}

func isNotFound(err error) bool {
	var e *refusal.Error
	return errors.As(err, &e) && e.Reason == refusal.NoWorkflow
}
