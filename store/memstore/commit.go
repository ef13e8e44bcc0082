package memstore

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// committer makes commits in a shard.
type committer struct{ *shard }

// check says whether a commit can be made, without making anything of it.
func (sh committer) check(c *store.Commit) (store.CommitResult, error) {
	if c.Receive != nil {
		r, err := sh.receipt(c.Receive.Queue)
		if err != nil {
			return store.CommitResult{}, err
		}
		if result := r.Check(c.Receive); result.Status != store.OK {
			return result, nil
		}
	}
	for i := range c.Puts {
		p := &c.Puts[i]
		if status := life.Put(p, sh.cells.byID[p.ID].Version); status != store.OK {
			return store.CommitResult{Status: status, Cell: sh.cells.get(p.ID)}, nil
		}
	}
	for _, h := range c.Under {
		if !sh.holds(h.ID, h.Token) {
			return store.CommitResult{Status: store.HoldLost, ID: h.ID}, nil
		}
	}
	for _, a := range c.Acks {
		if !sh.holds(a.ID, a.Token) {
			return store.CommitResult{Status: store.HoldLost, ID: a.ID}, nil
		}
		if status := life.Says(&a, sh.tasks[a.ID].task.Tells); status != store.OK {
			return store.CommitResult{Status: status, ID: a.ID}, nil
		}
	}
	for _, r := range c.Removes {
		old := sh.tasks[r.ID]
		if r.Due != 0 && !old.untouched(r.Due) || r.Dead && old.phase() != life.Dead {
			return store.CommitResult{Status: store.WrongState, ID: r.ID}, nil
		}
	}
	for _, t := range c.Adds {
		if t.Key == nil && sh.tasks[t.ID].phase().Live() {
			return store.CommitResult{Status: store.Conflict, ID: t.ID}, nil
		}
	}
	if sh.sealed && !life.TakesSealed(c, func(id store.CellID) bool { return sh.cells.byID[id].Version != 0 }) {
		return store.CommitResult{Status: store.Closed}, nil
	}
	return store.CommitResult{Status: store.OK}, nil
}

func (sh committer) holds(id string, token store.Token) bool {
	t := sh.tasks[id].life()
	return life.Ack(&t, token) == store.OK
}

// apply makes a commit that was checked, of a topic of a life.
func (sh committer) apply(c *store.Commit, life uint64, now clock) (result store.CommitResult) {
	result.Status = store.OK
	for _, a := range c.Acks {
		sh.ack(a, c.Retention, now)
	}
	drop := func(r *record) { sh.drop(r, now) }
	for _, r := range c.Removes {
		if r.Dead {
			sh.changeDead(r.ID, drop)
		} else {
			sh.change(r.ID, now, drop)
		}
	}
	for _, id := range c.Cancels {
		sh.cancel(id, now)
	}
	result.Adds = sh.addAll(c, now)
	if c.Receive != nil {
		var notMade []int64
		received := *c.Receive
		received.Numbers, notMade = c.Receive.Outcome(result.Adds)
		sh.receive(&received, notMade)
	}
	for i := range c.Puts {
		sh.cells.put(&c.Puts[i])
	}
	for _, p := range c.Send {
		switch {
		case p.Class != 0:
			sh.queues.push(p, c, life, now)
		case p.Topic == "":
			sh.in.push(p, now)
		default:
			sh.out.push(p, now)
		}
	}
	sh.in.take(c.Take)
	sh.out.drop(c.Drop)
	if c.Finish != nil {
		sh.queues.finish(c.Finish)
	}
	return result
}

// addAll adds the tasks of a commit. It says what became of them if one has a key.
func (sh committer) addAll(c *store.Commit, now clock) []store.AddResult {
	if !c.Keyed() {
		for _, t := range c.Adds {
			sh.add(t, now)
			sh.woke = true
		}
		return nil
	}
	keying, keyed := store.NewKeying(c), 0
	results := make([]store.AddResult, len(c.Adds))
	for i, t := range c.Adds {
		result := store.AddResult{Status: store.LeftOut, ID: t.ID}
		switch {
		case t.Key == nil:
			sh.add(t, now)
			result = store.AddResult{Status: store.Added, ID: t.ID, Due: t.Due}
			sh.woke = true
		case keying.Takes(t, sh.holderOf(t)):
			result = sh.addKeyed(t, now)
			keyed++
		}
		results[i] = result
	}
	sh.trimKeys(2*keyed, now)
	return results
}

// holderOf is the task that has the key of another one; empty: there is none.
func (sh committer) holderOf(t *store.Task) string {
	if m := sh.marks[t.Mark()]; m != nil {
		return m.id
	}
	return ""
}
