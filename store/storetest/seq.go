package storetest

import "github.com/ddq-io/ddq/store"

func seqCases() []entry {
	return []entry{
		{"Seq/CountsCallsThatMadeTasksPending", seqCounts},
		{"Seq/IsTheShardsOwn", seqShards},
		{"Seq/BigBatchCountsOnce", seqBig},
	}
}

// seqCounts goes through every call, and says by how much it raises seq.
func seqCounts(f *fixture) {
	s, ctx, shard := f.s, f.ctx, f.shard
	var want int64
	step := func(what string, raise int64, stamp store.Stamp, err error) {
		f.Helper()
		f.ok(what, err)
		want += raise
		equal(f, "seq after "+what, stamp.Seq, want)
		equal(f, "seq in stats after "+what, f.seq(), want)
	}
	past, later := f.now()-1000, f.now().Add(long)

	stamp, _, err := s.Add(ctx, shard, tasks(past, "a", "b", "c", "d"))
	step("add", 1, stamp, err)
	stamp, _, err = s.Add(ctx, shard, tasks(past, "a", "b"))
	step("add of duplicates", 0, stamp, err)
	stamp, _, err = s.Add(ctx, shard, tasks(later, "a", "e"))
	step("add of a duplicate and a new task", 1, stamp, err)
	stamp, _, err = s.Add(ctx, shard, nil)
	step("add of nothing", 0, stamp, err)

	holds := holdsOf(long, "a", "b", "c", "d")
	stamp, _, err = s.Hold(ctx, shard, f.fence, holds)
	step("hold", 0, stamp, err)
	stamp, _, err = s.Extend(ctx, shard, []store.Extend{{ID: "a", Token: holds[0].Token, Visibility: long}})
	step("extend", 0, stamp, err)
	stamp, _, err = s.Ack(ctx, shard, []store.Ack{{ID: "a", Token: holds[0].Token}}, long)
	step("ack", 0, stamp, err)
	stamp, _, err = s.Add(ctx, shard, tasks(later, "a"))
	step("add in place of a done task", 1, stamp, err)
	stamp, _, err = s.Nack(ctx, shard, []store.Nack{{ID: "b", Token: holds[1].Token}, {ID: "c", Token: holds[2].Token}})
	step("nack", 1, stamp, err)
	stamp, _, err = s.Nack(ctx, shard, []store.Nack{{ID: "b", Token: holds[1].Token}})
	step("refused nack", 0, stamp, err)
	stamp, _, err = s.Nack(ctx, shard, []store.Nack{{ID: "d", Token: holds[3].Token, Reason: store.ReasonPermanent}})
	step("nack to the dead letters", 0, stamp, err)
	stamp, _, err = s.Requeue(ctx, shard, []string{"absent"})
	step("requeue of nothing", 0, stamp, err)
	stamp, _, err = s.Requeue(ctx, shard, []string{"d"})
	step("requeue", 1, stamp, err)
	stamp, _, err = s.Edit(ctx, shard, []store.Edit{{ID: "d", Due: later}, {ID: "b", Due: later}})
	step("edit", 1, stamp, err)
	stamp, _, err = s.Edit(ctx, shard, []store.Edit{{ID: "absent", Due: later}})
	step("edit of nothing", 0, stamp, err)
	stamp, _, err = s.Remove(ctx, shard, store.Removals("d"))
	step("remove", 0, stamp, err)
	stamp, _, err = s.RemoveDead(ctx, shard, []string{"d"})
	step("remove of dead letters", 0, stamp, err)

	holds = holdsOf(long, "x", "y")
	stamp, _, err = s.HoldNew(ctx, shard, f.fence, tasks(past, "x", "y"), holds)
	step("hold of new tasks", 0, stamp, err)
	stamp, _, err = s.HoldNew(ctx, shard, f.fence, tasks(past, "x"), holds[:1])
	step("hold of new tasks again", 0, stamp, err)
	stamp, _, err = s.HoldNew(ctx, shard, f.fence, append(tasks(past, "v"), tasks(later, "w")...), holdsOf(long, "v", "w"))
	step("hold of new tasks of which one is not due", 1, stamp, err)

	stamp, _, err = s.Get(ctx, shard, []string{"a"})
	step("get", 0, stamp, err)
	stamp, _, err = s.Window(ctx, shard, store.WindowQuery{To: later, Limit: 10})
	step("window", 0, stamp, err)
	stamp, f.fence, err = s.Claim(ctx, shard, f.session)
	step("claim", 0, stamp, err)
	f.ok("drop", s.DropShard(ctx, shard))
	equal(f, "seq after the drop", f.seq(), want)
}

func seqShards(f *fixture) {
	f.scheduled("a")
	other := store.Shard{Topic: f.shard.Topic, N: f.shard.N + 1}
	stamp, _, err := f.s.Add(f.ctx, other, tasks(1, "b"))
	f.ok("add", err)
	equal(f, "seq of the other shard", stamp.Seq, 1)
	equal(f, "seq", f.seq(), 1)
}

func seqBig(f *fixture) {
	ids := numbered(3000)
	stamp, _, err := f.s.Add(f.ctx, f.shard, tasks(f.now().Add(long), ids...))
	f.ok("add", err)
	equal(f, "seq", stamp.Seq, 1)
	equal(f, "seq in stats", f.seq(), 1)

	moves := make([]store.Edit, len(ids))
	for i, id := range ids {
		moves[i] = store.Edit{ID: id, Due: 1}
	}
	stamp, _, err = f.s.Edit(f.ctx, f.shard, moves)
	f.ok("edit", err)
	equal(f, "seq after reschedule", stamp.Seq, 2)
	nacks := make([]store.Nack, len(ids))
	for i, token := range f.hold(ids...) {
		nacks[i] = store.Nack{ID: ids[i], Token: token, Reason: store.ReasonPermanent}
	}
	nacks[0].Reason, nacks[len(nacks)-1].Reason = store.ReasonNone, store.ReasonNone // far apart
	stamp, _, err = f.s.Nack(f.ctx, f.shard, nacks)
	f.ok("nack", err)
	equal(f, "seq after nack", stamp.Seq, 3)
	stamp, _, err = f.s.Requeue(f.ctx, f.shard, ids)
	f.ok("requeue", err)
	equal(f, "seq after requeue", stamp.Seq, 4)
	equal(f, "seq in stats", f.seq(), 4)
}
