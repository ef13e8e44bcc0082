package memstore

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// check says whether a commit can be made, without making anything of it.
func (sh *shard) check(c *store.Commit) store.CommitResult {
	for i := range c.Puts {
		p := &c.Puts[i]
		if status := life.Put(p, sh.cells.byID[p.ID].Version); status != store.OK {
			return store.CommitResult{Status: status, Cell: sh.cells.get(p.ID)}
		}
	}
	for _, h := range c.Under {
		if !sh.holds(h.ID, h.Token) {
			return store.CommitResult{Status: store.HoldLost, ID: h.ID}
		}
	}
	for _, a := range c.Acks {
		if !sh.holds(a.ID, a.Token) {
			return store.CommitResult{Status: store.HoldLost, ID: a.ID}
		}
		if status := life.Says(&a, sh.tasks[a.ID].task.Tells); status != store.OK {
			return store.CommitResult{Status: status, ID: a.ID}
		}
	}
	for _, r := range c.Removes {
		if r.Untried && !sh.tasks[r.ID].untried() {
			return store.CommitResult{Status: store.WrongState, ID: r.ID}
		}
	}
	for _, t := range c.Adds {
		if sh.tasks[t.ID].phase().Live() {
			return store.CommitResult{Status: store.Conflict, ID: t.ID}
		}
	}
	if sh.sealed && !life.TakesSealed(c, func(id store.CellID) bool { return sh.cells.byID[id].Version != 0 }) {
		return store.CommitResult{Status: store.Closed}
	}
	return store.CommitResult{Status: store.OK}
}

func (sh *shard) holds(id string, token store.Token) bool {
	t := sh.tasks[id].life()
	return life.Ack(&t, token) == store.OK
}

// apply makes a commit that was checked.
func (sh *shard) apply(c *store.Commit, now clock) {
	for _, a := range c.Acks {
		sh.ack(a, c.Retention, now)
	}
	for _, r := range c.Removes {
		sh.change(r.ID, now, func(r *record) { sh.drop(r, now) })
	}
	for _, id := range c.Cancels {
		sh.cancel(id, now)
	}
	for _, t := range c.Adds {
		sh.add(t, now)
		sh.woke = true
	}
	for i := range c.Puts {
		sh.cells.put(&c.Puts[i])
	}
	for _, p := range c.Send {
		if p.Topic == "" {
			sh.in.push(p, now)
		} else {
			sh.out.push(p, now)
		}
	}
	sh.in.take(c.Take)
	sh.out.drop(c.Drop)
}
