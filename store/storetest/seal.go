package storetest

import "github.com/ddq-io/ddq/store"

func sealCases() []entry {
	return []entry{
		{"Seal/RefusesNewTasks", sealRefuses},
		{"Seal/LeavesWhatIsThere", sealLeaves},
		{"Seal/EndsWithTheShard", sealEnds},
	}
}

func sealRefuses(f *fixture) {
	f.scheduled("old")
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.ok("seal again", f.s.Seal(f.ctx, f.shard))
	f.ok("seal of a shard without tasks", f.s.Seal(f.ctx, store.Shard{Topic: "never", N: 3}))
	before := f.seq()
	for _, id := range []string{"new", "old"} {
		_, _, err := f.s.Add(f.ctx, f.shard, tasks(f.now(), id))
		f.refused("add of "+id, err, store.ErrSealed)
		_, _, err = f.s.HoldNew(f.ctx, f.shard, f.fence, tasks(f.now(), id), holdsOf(long, id))
		f.refused("hold of a new "+id, err, store.ErrSealed)
	}
	_, _, err := f.s.Add(f.ctx, store.Shard{Topic: "never", N: 3}, tasks(f.now(), "new"))
	f.refused("add to a shard that was sealed empty", err, store.ErrSealed)
	_, _, err = f.s.Add(f.ctx, store.Shard{Topic: "never", N: 4}, tasks(f.now(), "new"))
	f.ok("add to the shard beside it", err)
	f.states(store.StateUnknown, "new")
	f.states(store.StateScheduled, "old")
	equal(f, "seq", f.seq(), before)
}

func sealLeaves(f *fixture) {
	f.ready("ack", "nack", "dead")
	f.scheduled("move", "remove")
	f.dead("again")
	tokens := f.hold("ack", "dead")
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.fence = f.claim(f.shard, f.session)
	f.ack(0, store.OK, store.Ack{ID: "ack", Token: tokens[0]})
	f.nack(store.Nack{ID: "dead", Token: tokens[1], Reason: store.ReasonMaxRetries})
	f.nack(store.Nack{ID: "nack", Token: f.hold("nack")[0]})
	_, moved, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "move", Due: f.now()}})
	f.ok("edit", err)
	f.statuses("edit", moved, store.OK)
	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("remove"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK)
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"again"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK)
	f.hold("again", "move", "nack")
	f.states(store.StateUnknown, "ack", "remove")
	f.states(store.StateDead, "dead")
}

func sealEnds(f *fixture) {
	f.ready("old")
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	f.ready("new")
	f.hold("new")
	f.states(store.StateUnknown, "old")
}
