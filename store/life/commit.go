package life

import (
	"strings"

	"github.com/ddq-io/ddq/store"
)

// Put is what becomes of a put of a cell that has a version; 0: there is none.
func Put(p *store.Put, version int64) store.Status {
	if p.If == store.AnyVersion || p.If == version {
		return store.OK
	}
	return store.Stale
}

// TakesSealed reports whether a sealed shard takes a commit, of whose puts some change cells
// that are there and some make new ones: no new cell that lives for long, and tasks
// only of a cell that is there. What another shard sends comes with a Receive, or with a tally, which is
// no such cell: it brings neither tasks nor cells, whatever else it changes, as the next generation of shards
// may have got them by now. Nor is it refused, as that generation may have made it.
func TakesSealed(c *store.Commit, there func(store.CellID) bool) bool {
	changes, makes, receives := false, false, c.Receive != nil
	for i := range c.Puts {
		p := &c.Puts[i]
		switch old := there(p.ID); {
		case p.ID.Kind() == store.CellTally:
			receives = receives || len(p.Body) > 0
		case old:
			changes = true
		case len(p.Body) > 0 && Moves(p.ID):
			return false
		case len(p.Body) > 0:
			makes = true
		}
	}
	if receives {
		return len(c.Adds) == 0 && !makes && (c.Receive == nil || len(c.Receive.Refused) == 0)
	}
	return changes || len(c.Adds) == 0
}

// Moves reports whether a cell is to be where new tasks of its topic go: schedules and
// workflows are, but not what only carries on with something until it ends. A child of a
// workflow, which has a slash in its key, carries on with that.
func Moves(id store.CellID) bool {
	return id.Kind() == store.CellSchedule || id.Kind() == store.CellWorkflow && !strings.Contains(id.Key(), "/")
}

// BringsWork reports whether a full store refuses a commit: one that adds tasks, makes a
// cell or sends something, unless it carries on with what there is. That is what takes, drops or finishes
// messages, ends holds, or stands under one.
func BringsWork(c *store.Commit) bool {
	if c.Take > 0 || c.Finish != nil || len(c.Drop)+len(c.Acks)+len(c.Under) > 0 {
		return false
	}
	for i := range c.Puts {
		if p := &c.Puts[i]; p.If <= 0 && len(p.Body) > 0 {
			return true
		}
	}
	return len(c.Adds)+len(c.Send) > 0
}
