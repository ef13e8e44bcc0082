package cells

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/store"
)

// Open workflows are looked through, some at a time: is there one without a cause to go on, or one
// with a task that is over, of which it was not told? There is none, but by a fault.
const (
	checkPage  = 100         // workflows that are read at a time
	checkPages = 10          // of a check
	checkEvery = time.Minute // between checks of one pass
	passEvery  = time.Hour   // between passes
)

// flowCheck is what a look does about workflows that are stuck.
type flowCheck struct{ *look }

// run looks through some open workflows, and takes those further that are stuck.
func (l flowCheck) run(ctx context.Context) error {
	now := l.Now()
	if l.Cells == 0 || now < l.Progress.checkAt {
		return nil
	}
	l.out.Progress.checkAt = now.Add(checkEvery)
	for range checkPages {
		cells, err := l.Store.Listed(ctx, l.ID, workflow.OpenList, l.out.Progress.checked, checkPage)
		if err != nil {
			return err
		}
		if len(cells) == 0 {
			l.out.Progress.checked, l.out.Progress.checkAt = store.Wake{}, now.Add(passEvery)
			break
		}
		last := cells[len(cells)-1]
		l.out.Progress.checked = store.Wake{At: last.Listed, ID: last.ID}
		if err := l.repair(ctx, cells); err != nil {
			return err
		}
	}
	return nil
}

// repair takes those of some workflows further that are stuck.
func (l flowCheck) repair(ctx context.Context, cells []store.Cell) error {
	for _, c := range cells {
		s, err := workflow.Read(c)
		if err != nil {
			continue // whoever steps it puts it aside
		}
		f := &flow{header: c}
		if !s.IsStuck() {
			if !s.HasTasks() {
				continue
			}
			if f.lost, err = l.lostEnds(ctx, c); err != nil || len(f.lost) == 0 {
				if err != nil {
					return err
				}
				continue
			}
		}
		if waits, err := l.parcelWaits(ctx, c.ID); waits || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		l.flows = append(l.flows, f)
		l.Flows.Repaired.Inc()
		l.Log.Error("workflow repaired: it had no cause to go on", "topic", l.ID.Topic, "shard", l.ID.N, "workflow", c.ID.Key(), "ends", len(f.lost))
	}
	return l.takeFlows(ctx)
}

// lostEnds compares the steps of a workflow that are made with their tasks.
func (l flowCheck) lostEnds(ctx context.Context, header store.Cell) ([]workflow.Event, error) {
	loaded, err := access.Load(ctx, l.Store, l.ID, []store.Cell{header}, l.Definitions)
	if err != nil || loaded[0].Err != nil {
		return nil, err
	}
	here, away := loaded[0].Workflow.OpenTasks()
	lost, err := l.lostAway(ctx, header.ID, away, loaded[0].Workflow.OpenChildren())
	if err != nil || len(here) == 0 {
		return lost, err
	}
	_, found, err := store.GetAll(ctx, l.Tasks, l.ID, here)
	return append(lost, workflow.LostEnds(found, l.Now())...), err
}

// parcelWaits reports whether something is told to a cell that it has not taken yet, or may be:
// then it is not stuck.
func (l flowCheck) parcelWaits(ctx context.Context, id store.CellID) (bool, error) {
	parcels, err := l.Store.Parcels(ctx, l.ID, store.InBox, l.out.Progress.Taken, batch)
	if err != nil || len(parcels) == batch {
		return true, err
	}
	for i := range parcels {
		if parcels[i].To == id {
			return true, nil
		}
	}
	return false, nil
}
