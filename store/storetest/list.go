package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

func listCases() []entry {
	return []entry{
		{"Running/ShowsHolds", runningShows},
		{"Running/WalksWithoutLoss", runningWalk},
		{"Running/WalksWhileHoldsChange", runningChanges},
		{"List/PendingByDueTime", listPending},
		{"List/DoneByFinish", listDone},
		{"List/DeadByFinish", listDead},
		{"List/Running", listRunning},
		{"List/EachKindItsOwn", listKinds},
		{"List/WalksWithoutLossOfEqualTimes", listEqual},
		{"List/WalksWhileTasksGo", listChanges},
		{"List/OddIDs", listOdd},
		{"List/BadCursor", listBadCursor},
		{"Sweep/FindsNothingOnAHealthyShard", sweepHealthy},
		{"Sweep/RefusedWithoutTheFence", sweepFenced},
	}
}

// walkRunning walks through all holds.
func (f *fixture) walkRunning(limit int) map[string]store.Running {
	f.Helper()
	all := make(map[string]store.Running)
	for cursor, calls := "", 0; ; calls++ {
		page, next, err := f.s.Running(f.ctx, f.shard, cursor, limit)
		f.ok("running", err)
		for _, r := range page {
			all[r.ID] = r
		}
		if next == "" {
			return all
		}
		f.endless(calls)
		cursor = next
	}
}

// walk lists all tasks of a kind. Running ones may come more than once.
func (f *fixture) walk(kind store.Kind, limit int) []store.Snapshot {
	f.Helper()
	var all []store.Snapshot
	for cursor, calls := "", 0; ; calls++ {
		page, next, err := f.s.List(f.ctx, f.shard, kind, cursor, limit)
		f.ok("list", err)
		if kind != store.KindRunning && len(page) > limit {
			f.Fatalf("list returned %d tasks under a limit of %d", len(page), limit)
		}
		all = append(all, page...)
		if next == "" {
			return all
		}
		f.endless(calls)
		cursor = next
	}
}

// endless fails the case when a walk goes in circles.
func (f *fixture) endless(calls int) {
	f.Helper()
	if calls > 20_000 {
		f.Fatal("the walk does not end")
	}
}

func idsOfSnapshots(snapshots []store.Snapshot) []string {
	ids := make([]string, len(snapshots))
	for i, s := range snapshots {
		ids[i] = s.ID
	}
	return ids
}

func runningShows(f *fixture) {
	f.scheduled("scheduled")
	f.ready("a", "b")
	holds := holdsOf(long, "a", "b")
	holds[1].Worker = "worker-2"
	stamp, held := f.tryHold(holds, store.OK, store.OK)
	got := f.walkRunning(10)
	equal(f, "number of holds", len(got), 2)
	for i, h := range holds {
		want := store.Running{ID: h.ID, Token: h.Token, Deadline: held[i].Deadline, Attempt: 1, Worker: h.Worker, Started: got[h.ID].Started}
		f.about("start of "+h.ID, want.Started, stamp.Now)
		equal(f, "hold of "+h.ID, got[h.ID], want)
	}
	f.ack(long, store.OK, store.Ack{ID: "a", Token: holds[0].Token})
	f.nack(store.Nack{ID: "b", Token: holds[1].Token})
	equal(f, "number of holds at the end", len(f.walkRunning(10)), 0)
}

func runningWalk(f *fixture) {
	ids := numbered(1200) // beyond what stores keep in one piece
	f.ready(ids...)
	tokens := f.hold(ids...)
	for _, limit := range []int{1, 10, 500, 5000} {
		got := f.walkRunning(limit)
		equal(f, fmt.Sprintf("number of holds in pages of %d", limit), len(got), len(ids))
		for i, id := range ids {
			equal(f, "token of "+id, got[id].Token, tokens[i])
		}
	}
}

// runningChanges walks while other holds come and go, and checks that those
// that stay are found.
func runningChanges(f *fixture) {
	stay, leave, come := numbered(300), make([]string, 300), make([]string, 300)
	for i := range stay {
		leave[i], come[i] = stay[i]+"-leaves", stay[i]+"-comes"
	}
	f.ready(slices.Concat(stay, leave, come)...)
	stayed, left := f.hold(stay...), f.hold(leave...)
	seen := make(map[string]bool)
	cursor, step := "", 0
	for {
		page, next, err := f.s.Running(f.ctx, f.shard, cursor, 20)
		f.ok("running", err)
		for _, r := range page {
			seen[r.ID] = true
		}
		if cursor = next; cursor == "" {
			break
		}
		f.endless(step)
		if step < 300 {
			f.ack(0, store.OK, store.Ack{ID: leave[step], Token: left[step]})
			f.hold(come[step])
			_, _, err = f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: stay[step], Token: stayed[step], Visibility: 2 * long}})
			f.ok("extend", err)
		}
		step++
	}
	for _, id := range stay {
		equal(f, "hold "+id+" seen", seen[id], true)
	}
}

func listPending(f *fixture) {
	now := f.now()
	f.add(task("c", now-1), task("b", now.Add(long)), task("a", now.Add(2*long)), task("old", 1))
	for _, limit := range []int{1, 2, 3, 100} {
		got := f.walk(store.KindPending, limit)
		same(f, fmt.Sprintf("pending in pages of %d", limit), idsOfSnapshots(got), []string{"old", "c", "b", "a"})
		equal(f, "state", got[1].State, store.StateReady)
		equal(f, "state", got[2].State, store.StateScheduled)
		equal(f, "payload", string(got[2].Payload), "payload of b")
		equal(f, "due time", got[2].Due, now.Add(long))
	}
}

func listDone(f *fixture) {
	order := []string{"c", "a", "b"}
	f.ready(order...)
	for i, token := range f.hold(order...) {
		f.ack(long*time.Duration(3-i), store.OK, store.Ack{ID: order[i], Token: token}) // those that finish first are kept longest
		waitUntil(f, f.s, f.now()+2)
	}
	for _, limit := range []int{1, 2, 100} {
		got := f.walk(store.KindDone, limit)
		same(f, fmt.Sprintf("done in pages of %d", limit), idsOfSnapshots(got), order)
		for _, s := range got {
			equal(f, "state", s.State, store.StateDone)
			equal(f, "payload", string(s.Payload), "payload of "+s.ID)
		}
	}
}

func listDead(f *fixture) {
	f.dead("c")
	waitUntil(f, f.s, f.now()+2)
	f.expired("a")
	waitUntil(f, f.s, f.now()+2)
	f.dead("b")
	for _, limit := range []int{1, 2, 100} {
		got := f.walk(store.KindDead, limit)
		same(f, fmt.Sprintf("dead in pages of %d", limit), idsOfSnapshots(got), []string{"c", "a", "b"})
		equal(f, "state", got[0].State, store.StateDead)
		equal(f, "state", got[1].State, store.StateExpired)
		equal(f, "reason", got[0].Reason, store.ReasonPermanent)
		equal(f, "reason", got[1].Reason, store.ReasonExpired)
		equal(f, "last error", got[2].LastError, "bad b")
	}
}

func listRunning(f *fixture) {
	ids := numbered(700)
	f.ready(ids...)
	tokens := f.hold(ids...)
	for _, limit := range []int{3, 100, 1000} {
		got := make(map[string]store.Snapshot)
		for _, s := range f.walk(store.KindRunning, limit) {
			got[s.ID] = s
		}
		equal(f, "number of running tasks", len(got), len(ids))
		for i, id := range ids {
			equal(f, "state of "+id, got[id].State, store.StateRunning)
			equal(f, "token of "+id, got[id].Token, tokens[i])
			equal(f, "payload of "+id, string(got[id].Payload), "payload of "+id)
		}
	}
}

func listKinds(f *fixture) {
	f.everyState()
	for kind, want := range map[store.Kind][]string{
		store.KindPending: {"ready", "retrying", "scheduled"},
		store.KindRunning: {"running"},
		store.KindDone:    {"done"},
		store.KindDead:    {"dead", "expired"},
	} {
		got := slices.Sorted(slices.Values(idsOfSnapshots(f.walk(kind, 100))))
		same(f, fmt.Sprintf("tasks of kind %d", kind), got, want)
		empty, next, err := f.s.List(f.ctx, store.Shard{Topic: "empty"}, kind, "", 10)
		f.ok("list an empty shard", err)
		equal(f, "number of tasks", len(empty), 0)
		equal(f, "next", next, "")
	}
}

// listEqual walks through tasks that share one time, in each ordered kind.
func listEqual(f *fixture) {
	ids := numbered(400)
	f.ready(ids...)
	acks, nacks := make([]store.Ack, 0, 400), make([]store.Nack, 0, 400)
	for i, token := range f.hold(ids...) {
		acks = append(acks, store.Ack{ID: ids[i], Token: token})
	}
	f.ack(long, store.OK, acks...)
	dead := make([]string, len(ids))
	for i, id := range ids {
		dead[i] = "dead-" + id
	}
	f.ready(dead...)
	for i, token := range f.hold(dead...) {
		nacks = append(nacks, store.Nack{ID: dead[i], Token: token, Reason: store.ReasonPermanent})
	}
	_, _, err := f.s.Nack(f.ctx, f.shard, nacks)
	f.ok("nack", err)
	pending := make([]string, len(ids))
	for i, id := range ids {
		pending[i] = "pending-" + id
	}
	f.scheduled(pending...)
	for _, limit := range []int{7, 100, 400, 1000} {
		for kind, want := range map[store.Kind][]string{store.KindPending: pending, store.KindDone: ids, store.KindDead: dead} {
			got := idsOfSnapshots(f.walk(kind, limit))
			same(f, fmt.Sprintf("kind %d in pages of %d", kind, limit), slices.Sorted(slices.Values(got)), want)
		}
	}
}

// listChanges removes what it has seen: the walk must not skip what follows.
func listChanges(f *fixture) {
	ids := numbered(100)
	f.scheduled(ids...)
	var got []string
	for cursor, calls := "", 0; ; calls++ {
		f.endless(calls)
		page, next, err := f.s.List(f.ctx, f.shard, store.KindPending, cursor, 9)
		f.ok("list", err)
		seen := idsOfSnapshots(page)
		got = append(got, seen...)
		_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals(seen...))
		f.ok("remove", err)
		f.statuses("remove", removed, repeat(store.OK, len(seen))...)
		if cursor = next; cursor == "" {
			break
		}
	}
	same(f, "tasks", got, ids)
}

func listOdd(f *fixture) {
	ids := oddIDs()
	f.ready(ids...)
	same(f, "pending", slices.Sorted(slices.Values(idsOfSnapshots(f.walk(store.KindPending, 2)))), ids)
	tokens := f.hold(ids...)
	running := f.walkRunning(2)
	equal(f, "number of holds", len(running), len(ids))
	for i, id := range ids {
		equal(f, "token of "+id, running[id].Token, tokens[i])
		f.nack(store.Nack{ID: id, Token: tokens[i], Reason: store.ReasonPermanent})
	}
	same(f, "dead", slices.Sorted(slices.Values(idsOfSnapshots(f.walk(store.KindDead, 2)))), ids)
}

func listBadCursor(f *fixture) {
	f.ready("a", "b", "c")
	f.hold("a")
	for _, cursor := range []string{"no cursor", "*", "-1", "12 34", "\x00\xff", "ümlaut", strings.Repeat("x", 300), "{}", "999999999999999999999999"} {
		_, _, err := f.s.Running(f.ctx, f.shard, cursor, 10)
		f.refused(fmt.Sprintf("running with cursor %.20q", cursor), err, store.ErrBadCursor)
		for _, kind := range []store.Kind{store.KindPending, store.KindRunning, store.KindDone, store.KindDead} {
			_, _, err := f.s.List(f.ctx, f.shard, kind, cursor, 10)
			f.refused(fmt.Sprintf("list of kind %d with cursor %.20q", kind, cursor), err, store.ErrBadCursor)
		}
		_, _, err = f.s.Sweep(f.ctx, f.shard, f.fence, cursor, 10)
		f.refused(fmt.Sprintf("sweep with cursor %.20q", cursor), err, store.ErrBadCursor)
	}
}

func sweepHealthy(f *fixture) {
	ids, states := f.everyState()
	more := numbered(500)
	f.ready(more...)
	f.hold(more[:250]...)
	before := f.stats()
	for _, limit := range []int{1, 10, 1000} {
		cursor, calls := "", 0
		for {
			repaired, next, err := f.s.Sweep(f.ctx, f.shard, f.fence, cursor, limit)
			f.ok("sweep", err)
			equal(f, "number of repairs", repaired, 0)
			if cursor = next; cursor == "" {
				break
			}
			calls++
			f.endless(calls)
		}
	}
	f.unchanged(ids, states)
	after := f.stats()
	before.Now = after.Now
	equal(f, "stats after the sweep", after, before)
}

func sweepFenced(f *fixture) {
	for name, fence := range f.wrongFences() {
		_, _, err := f.s.Sweep(f.ctx, f.shard, fence, "", 10)
		f.refused("sweep with a fence "+name, err, store.ErrFenced)
	}
}
