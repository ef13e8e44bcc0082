package storetest

import "github.com/ddq-io/ddq/store"

func isolationCases() []entry {
	return []entry{
		{"Shards/DoNotSeeEachOther", shardsApart},
		{"Shards/AreOwnedOneByOne", shardsOwned},
		{"DropShard/LeavesTheOwner", dropOwner},
		{"DropShard/LeavesOtherShards", dropOthers},
	}
}

// neighbours returns shards whose names are prefixes of each other.
func neighbours() []store.Shard {
	return []store.Shard{
		{Topic: "a", N: 1}, {Topic: "a", N: 11}, {Topic: "a", N: 111}, {Topic: "a", N: 0}, {Topic: "a", N: 10},
		{Topic: "a1", N: 1}, {Topic: "a.b", N: 1}, {Topic: "a.1", N: 1}, {Topic: "a-1", N: 1}, {Topic: "A", N: 1}, {Topic: "a.b.c", N: 1}, {Topic: "aa", N: 1},
		{Topic: "a/1", N: 1}, {Topic: "a/a", N: 1}, {Topic: "aa/1", N: 1}, {Topic: "a/1", N: 11}, // of namespaces
	}
}

func shardsApart(f *fixture) {
	shards := neighbours()
	fences := make([]store.Fence, len(shards))
	for i, shard := range shards {
		f.shard, f.fence = shard, f.claim(shard, f.session)
		fences[i] = f.fence
		for _, id := range []string{"same", "scheduled"} {
			t := task(id, f.now()-store.Millis(1000+i))
			t.Payload = []byte(shard.String())
			f.add(t)
		}
	}
	f.ok("edit", f.editAll(shards))
	for i, shard := range shards {
		f.shard, f.fence = shard, fences[i]
		_, held := f.tryHold(holdsOf(long, "same"), store.OK)
		equal(f, "payload in "+shard.String(), string(held[0].Task.Payload), shard.String())
		stats := f.stats()
		equal(f, "number of pending tasks in "+shard.String(), stats.Pending, 1)
		equal(f, "number of running tasks in "+shard.String(), stats.Running, 1)
		same(f, "pending tasks of "+shard.String(), f.window(), []string{"scheduled"})
		equal(f, "number of listed tasks", len(f.walk(store.KindPending, 10)), 1)
		equal(f, "number of listed holds", len(f.walkRunning(10)), 1)
		f.ack(long, store.OK, store.Ack{ID: "same", Token: f.get("same").Token})
		equal(f, "number of listed done tasks", len(f.walk(store.KindDone, 10)), 1)
	}
}

// editAll moves the task "scheduled" of each shard to a time of its own.
func (f *fixture) editAll(shards []store.Shard) error {
	for i, shard := range shards {
		due := f.now().Add(long) + store.Millis(i)
		if _, _, err := f.s.Edit(f.ctx, shard, []store.Edit{{ID: "scheduled", Due: due}}); err != nil {
			return err
		}
	}
	return nil
}

func shardsOwned(f *fixture) {
	other := f.begin("node-2", long)
	fences := make(map[store.Shard]store.Fence)
	for i, shard := range neighbours() {
		session := f.session
		if i%2 == 1 {
			session = other
		}
		fences[shard] = f.claim(shard, session)
		equal(f, "first epoch of "+shard.String(), fences[shard].Epoch, 1)
	}
	stats, err := f.s.Stats(f.ctx, neighbours())
	f.ok("stats", err)
	for i, shard := range neighbours() {
		equal(f, "owner of "+shard.String(), stats[i].Owner, []string{"node-1", "node-2"}[i%2])
		for _, foreign := range neighbours() {
			_, _, err := f.s.Hold(f.ctx, shard, fences[foreign], holdsOf(long, "absent"))
			if foreign == shard {
				f.ok("hold with its own fence", err)
				continue
			}
			f.refused("hold with the fence of another shard", err, store.ErrFenced)
		}
	}
}

func dropOwner(f *fixture) {
	ids, _ := f.everyState()
	before := f.stats()
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	f.states(store.StateUnknown, ids...)
	stats := f.stats()
	equal(f, "number of tasks", stats.Pending+stats.Ready+stats.Running+stats.Done+stats.Dead, 0)
	equal(f, "oldest", stats.OldestMs, 0)
	equal(f, "owner", stats.Owner, "node-1")
	equal(f, "epoch", stats.Epoch, f.fence.Epoch)
	equal(f, "seq", stats.Seq, before.Seq)
	for kind := store.KindPending; kind <= store.KindDead; kind++ {
		equal(f, "number of listed tasks", len(f.walk(kind, 10)), 0)
	}
	f.ready(ids...) // under the same ids, by the same owner
	f.hold(ids...)
	f.ok("drop again", f.s.DropShard(f.ctx, f.shard))
	f.ok("drop of an unknown shard", f.s.DropShard(f.ctx, store.Shard{Topic: "never", N: 3}))
}

func dropOthers(f *fixture) {
	shards := neighbours()
	for i, shard := range shards {
		f.shard, f.fence = shard, f.claim(shard, f.session)
		f.everyState()
		if i == 0 {
			f.add(tasks(f.now().Add(long), numbered(3000)...)...)
		}
	}
	f.ok("drop", f.s.DropShard(f.ctx, shards[0]))
	stats, err := f.s.Stats(f.ctx, shards)
	f.ok("stats", err)
	equal(f, "number of tasks in the dropped shard", stats[0].Pending+stats[0].Running+stats[0].Done+stats[0].Dead, 0)
	for i, shard := range shards[1:] {
		got := stats[i+1]
		equal(f, "number of tasks in "+shard.String(), got.Pending+got.Running+got.Done+got.Dead, 7)
		f.shard = shard
		equal(f, "payload in "+shard.String(), string(f.get("running").Payload), "payload of running")
	}
}
