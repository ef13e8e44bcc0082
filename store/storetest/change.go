package storetest

import (
	"slices"

	"github.com/ddq-io/ddq/store"
)

func changeCases() []entry {
	return []entry{
		{"Remove/PendingTasksOnly", remove},
		{"Remove/FreesTheID", removeFrees},
		{"Remove/InAVersion", removeInVersion},
		{"Edit/MovesPendingTasksOnly", editMoves},
		{"Edit/EitherWay", editEitherWay},
		{"Edit/KeepsTheAttempts", editAttempts},
	}
}

func deadCases() []entry {
	return []entry{
		{"Requeue/DeadTasksOnly", requeue},
		{"Requeue/WithFreshAttemptsAndNoExpiry", requeueFresh},
		{"RemoveDead/DeadTasksOnly", removeDead},
	}
}

// everyState makes a task in each state and returns their ids with an absent
// one at the end, and the states.
func (f *fixture) everyState() ([]string, []store.State) {
	f.Helper()
	f.scheduled("scheduled")
	f.ready("ready")
	f.nack(store.Nack{ID: "retrying", Token: f.held("retrying"), Delay: long})
	f.held("running")
	f.done("done")
	f.dead("dead")
	f.expired("expired")
	return []string{"scheduled", "ready", "retrying", "running", "done", "dead", "expired", "absent"},
		[]store.State{
			store.StateScheduled, store.StateReady, store.StateRetrying, store.StateRunning,
			store.StateDone, store.StateDead, store.StateExpired, store.StateUnknown,
		}
}

// checkChanges checks what Remove or Edit answered for everyState.
func checkChanges(f *fixture, what string, got any, told func(i int) store.State, states []store.State) {
	f.Helper()
	f.statuses(what, got, store.OK, store.OK, store.OK,
		store.WrongState, store.WrongState, store.WrongState, store.WrongState, store.NotFound)
	for i := 3; i < 7; i++ {
		equal(f, "state told by "+what, told(i), states[i])
	}
}

func remove(f *fixture) {
	ids, states := f.everyState()
	seq := f.seq()
	stamp, got, err := f.s.Remove(f.ctx, f.shard, store.Removals(ids...))
	f.ok("remove", err)
	checkChanges(f, "remove", got, func(i int) store.State { return got[i].State }, states)
	equal(f, "seq", stamp.Seq, seq)
	f.states(store.StateUnknown, ids[:3]...)
	f.unchanged(ids[3:], states[3:])
	stats := f.stats()
	equal(f, "number of pending tasks", stats.Pending, 0)
	equal(f, "number of other tasks", stats.Running+stats.Done+stats.Dead, 4)
	same(f, "pending tasks", f.window(), nil)

	_, got, err = f.s.Remove(f.ctx, f.shard, store.Removals("ready", "scheduled"))
	f.ok("remove again", err)
	f.statuses("remove again", got, store.NotFound, store.NotFound)
}

func removeFrees(f *fixture) {
	f.scheduled("a", "b")
	_, got, err := f.s.Remove(f.ctx, f.shard, store.Removals("a", "a"))
	f.ok("remove", err)
	f.statuses("remove twice in one batch", got, store.OK, store.NotFound)
	other := task("a", f.now()-1)
	other.Fingerprint, other.Payload = 8, []byte("other")
	f.add(other)
	equal(f, "payload", string(f.get("a").Payload), "other")
	same(f, "pending tasks", f.window(), []string{"a", "b"})
}

// removeInVersion: who has read a task deletes what was read, and nothing that an edit made of it.
func removeInVersion(f *fixture) {
	f.scheduled("edited", "asitwas", "any")
	_, edits, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "edited", Due: f.now().Add(long)}, {ID: "any", Due: f.now().Add(long)}})
	f.ok("edit", err)
	f.statuses("edit", edits, store.OK, store.OK)
	removals := []store.Removal{{ID: "edited", IfVersion: 1}, {ID: "asitwas", IfVersion: 1}, {ID: "any"}, {ID: "absent", IfVersion: 1}}
	_, got, err := f.s.Remove(f.ctx, f.shard, removals)
	f.ok("remove", err)
	f.statuses("remove", got, store.Stale, store.OK, store.OK, store.NotFound)
	same(f, "pending tasks", f.window(), []string{"edited"})
	_, got, err = f.s.Remove(f.ctx, f.shard, []store.Removal{{ID: "edited", IfVersion: 2}})
	f.ok("remove", err)
	f.statuses("remove of the version that is there", got, store.OK)
}

func editMoves(f *fixture) {
	ids, states := f.everyState()
	seq := f.seq()
	due := f.now().Add(3 * long)
	moves := make([]store.Edit, len(ids))
	for i, id := range ids {
		moves[i] = store.Edit{ID: id, Due: due}
	}
	stamp, got, err := f.s.Edit(f.ctx, f.shard, moves)
	f.ok("edit", err)
	checkChanges(f, "edit", got, func(i int) store.State { return got[i].State }, states)
	equal(f, "seq", stamp.Seq, seq+1)
	for _, id := range ids[:3] {
		equal(f, "due time of "+id, f.get(id).Due, due)
	}
	f.states(store.StateScheduled, "scheduled", "ready")
	f.states(store.StateRetrying, "retrying")
	f.unchanged(ids[3:], states[3:])

	stamp, _, err = f.s.Edit(f.ctx, f.shard, moves[3:])
	f.ok("edit", err)
	equal(f, "seq when nothing moved", stamp.Seq, seq+1)
}

func editEitherWay(f *fixture) {
	f.scheduled("a", "b", "c")
	now := f.now()
	moves := []store.Edit{{ID: "c", Due: now - 5}, {ID: "a", Due: now - 1}, {ID: "b", Due: now.Add(2 * long)}}
	_, got, err := f.s.Edit(f.ctx, f.shard, moves)
	f.ok("edit", err)
	f.statuses("edit", got, store.OK, store.OK, store.OK)
	same(f, "pending tasks", f.window(), []string{"c", "a", "b"})
	equal(f, "number of pending tasks", f.stats().Pending, 3)
	equal(f, "number of ready tasks", f.stats().Ready, 2)
	_, held := f.tryHold(holdsOf(long, "a", "b"), store.OK, store.NotDue)
	equal(f, "due time of the held task", held[0].Task.Due, now-1)
	equal(f, "payload of the held task", string(held[0].Task.Payload), "payload of a")

	_, got, err = f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "c", Due: now.Add(long)}, {ID: "c", Due: now - 7}})
	f.ok("edit", err)
	f.statuses("edit twice in one batch", got, store.OK, store.OK)
	equal(f, "due time", f.get("c").Due, now-7)
	same(f, "pending tasks", f.window(), []string{"c", "b"})
}

func editAttempts(f *fixture) {
	f.nack(store.Nack{ID: "a", Token: f.held("a"), Delay: long, Error: "no luck"})
	_, _, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Due: 1}})
	f.ok("edit", err)
	got := f.get("a")
	equal(f, "state", got.State, store.StateReady)
	equal(f, "attempt", got.Attempt, 1)
	equal(f, "last error", got.LastError, "no luck")
}

func requeue(f *fixture) {
	ids, states := f.everyState()
	seq := f.seq()
	stamp, got, err := f.s.Requeue(f.ctx, f.shard, append(slices.Clone(ids), "dead"))
	f.ok("requeue", err)
	f.statuses("requeue", got, store.NotFound, store.NotFound, store.NotFound, store.NotFound, store.NotFound,
		store.OK, store.OK, store.NotFound, store.NotFound)
	equal(f, "seq", stamp.Seq, seq+1)
	f.unchanged(ids[:5], states[:5])
	for _, id := range []string{"dead", "expired"} {
		got := f.get(id)
		f.about("due time", got.Due, stamp.Now)
		equal(f, "reason", got.Reason, store.ReasonNone)
		equal(f, "finished", got.Finished, 0)
		waitUntil(f, f.s, got.Due)
		f.states(store.StateReady, id)
	}
	stats := f.stats()
	equal(f, "number of dead tasks", stats.Dead, 0)
	equal(f, "number of pending tasks", stats.Pending, 5)
	equal(f, "length of the list of dead tasks", len(f.walk(store.KindDead, 10)), 0)
}

func requeueFresh(f *fixture) {
	f.dead("dead")
	f.expired("expired")
	_, got, err := f.s.Requeue(f.ctx, f.shard, []string{"dead", "expired"})
	f.ok("requeue", err)
	f.statuses("requeue", got, store.OK, store.OK)
	for _, id := range []string{"dead", "expired"} {
		snapshot := f.get(id)
		equal(f, "attempt", snapshot.Attempt, 0)
		equal(f, "expiry", snapshot.Expires, 0)
		equal(f, "payload", string(snapshot.Payload), "payload of "+id)
		waitUntil(f, f.s, snapshot.Due)
		_, held := f.tryHold(holdsOf(long, id), store.OK)
		equal(f, "attempt of the first hold", held[0].Task.Attempt, 1)
	}
}

func removeDead(f *fixture) {
	ids, states := f.everyState()
	seq := f.seq()
	stamp, got, err := f.s.RemoveDead(f.ctx, f.shard, append(slices.Clone(ids), "dead"))
	f.ok("remove dead", err)
	f.statuses("remove dead", got, store.NotFound, store.NotFound, store.NotFound, store.NotFound, store.NotFound,
		store.OK, store.OK, store.NotFound, store.NotFound)
	equal(f, "seq", stamp.Seq, seq)
	f.unchanged(ids[:5], states[:5])
	f.states(store.StateUnknown, "dead", "expired")
	equal(f, "number of dead tasks", f.stats().Dead, 0)
	equal(f, "length of the list of dead tasks", len(f.walk(store.KindDead, 10)), 0)
}
