package storetest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

func editCases() []entry {
	return []entry{
		{"Edit/RaisesTheVersion", editVersions},
		{"Edit/OfAnotherVersionIsStale", editStale},
		{"Edit/OfATaskThatTookItsPlaceIsStale", editReplaced},
		{"Edit/ReplacesWhatItMay", editReplaces},
		{"Edit/ReplacesAndMovesAtOnce", editBoth},
		{"Edit/Now", editNow},
		{"Edit/NotPastTheExpiry", editExpiry},
		{"Edit/WithoutAMoveTellsNobody", editQuietly},
		{"Edit/AddKnowsTheRequestStill", editThenAdd},
		{"Edit/HoldTakesTheTaskAsItIs", editThenHold},
		{"Edit/SeveralOfATaskInABatch", editTwice},
		{"Edit/BigBatch", editBig},
		{"Edit/MovesBetweenLanes", editLanes},
	}
}

// edit makes edits of which each must have the expected status.
func (f *fixture) edit(want store.Status, edits ...store.Edit) []store.EditResult {
	f.Helper()
	_, results, err := f.s.Edit(f.ctx, f.shard, edits)
	f.ok("edit", err)
	f.statuses("edit", results, repeat(want, len(edits))...)
	return results
}

// version returns the version of one task.
func (f *fixture) version(id string) int64 {
	f.Helper()
	t := f.get(id)
	return t.Task.Version()
}

// changed is what is stored of a task, with another payload.
func (f *fixture) changed(id, payload string) *store.Task {
	f.Helper()
	t := f.get(id).Task
	t.Payload = []byte(payload)
	return &t
}

// editVersions goes through the life of a task: edits count, attempts do not.
func editVersions(f *fixture) {
	f.ready("a")
	want := int64(1)
	check := func(what string) {
		f.Helper()
		equal(f, "version after "+what, f.version("a"), want)
	}
	check("add")
	for _, e := range []store.Edit{{Due: f.now() - 5}, {Now: true}, {IfVersion: 3}, {Task: f.changed("a", "other")}, {Task: f.changed("a", "another")}} {
		e.ID = "a"
		if e.Task != nil {
			e.Task.Edits = want - 1
		}
		result := f.edit(store.OK, e)[0]
		want++
		equal(f, "version told", result.Version, want)
		check("edit")
	}
	token := f.hold("a")[0]
	check("hold")
	f.nack(store.Nack{ID: "a", Token: token, Reason: store.ReasonPermanent})
	check("nack")
	_, statuses, err := f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.statuses("requeue", statuses, store.OK)
	check("requeue")
	waitUntil(f, f.s, f.get("a").Due)
	_, held := f.tryHold(holdsOf(time.Millisecond, "a"), store.OK)
	equal(f, "version of the held task", held[0].Task.Version(), want)
	token = f.get("a").Token
	waitUntil(f, f.s, held[0].Deadline+1)
	_, recovered, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: "a", Token: token}})
	f.ok("recover", err)
	f.statuses("recover", recovered, store.OK)
	check("recover")
	waitUntil(f, f.s, f.get("a").Due)
	f.ack(long, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	check("ack")
	f.ready("a")
	want = 1
	check("add in place of the done task")
}

func editStale(f *fixture) {
	f.scheduled("a")
	f.edit(store.OK, store.Edit{ID: "a", Due: f.now().Add(long)})
	before, seq := f.get("a"), f.seq()
	old, next := f.changed("a", "old"), f.changed("a", "next")
	old.Edits, next.Edits = 0, 2
	for _, e := range []store.Edit{
		{ID: "a", IfVersion: 1, Due: 5}, {ID: "a", IfVersion: 3, Now: true}, {ID: "a", Task: old}, {ID: "a", Task: next, Due: 5},
		{ID: "a", Task: old, IfVersion: 2},
	} {
		equal(f, "version that is in the way", f.edit(store.Stale, e)[0].Version, 2)
	}
	checkTask(f, "after stale edits", f.get("a").Task, before.Task)
	equal(f, "seq", f.seq(), seq)
	f.edit(store.OK, store.Edit{ID: "a", IfVersion: 2, Due: 5})
}

// editReplaced edits a task that was deleted meanwhile and added anew, which has the
// same version.
func editReplaced(f *fixture) {
	f.scheduled("a")
	edit := store.Edit{ID: "a", Task: f.changed("a", "of the task before")}
	_, _, err := f.s.Remove(f.ctx, f.shard, store.Removals("a"))
	f.ok("remove", err)
	other := task("a", f.now().Add(long))
	other.Fingerprint = 8
	f.add(other)
	f.edit(store.Stale, edit)
	checkTask(f, "the other task", f.get("a").Task, *other)
}

func editReplaces(f *fixture) {
	now := f.now()
	was := task("a", now-10)
	was.Attributes = []store.Attribute{{Key: "k", Value: "v"}}
	was.Expires = now.Add(long)
	f.add(was)
	f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Delay: long, Error: "no luck"})
	full := f.get("a").Task
	full.Payload, full.Attributes = []byte("other"), []store.Attribute{{Key: "x", Value: ""}, {Key: "y", Value: "2"}}
	full.Expires, full.Visibility, full.MaxRetries = now.Add(2*long), 3*long, 7
	full.Backoff = &store.Backoff{Kind: store.BackoffLinear, Base: time.Second, Max: long, Jitter: 5}
	bare := full
	bare.Payload, bare.Attributes, bare.Backoff = nil, nil, nil
	bare.Expires, bare.Visibility, bare.MaxRetries = 0, 0, -1
	for i, want := range []store.Task{full, bare, full} {
		want.Edits = int64(i)
		given := want
		given.Created, given.Due, given.Attempt, given.LastError = want.Created, 99, 9, "not the caller's"
		equal(f, "due time told", f.edit(store.OK, store.Edit{ID: "a", Task: &given})[0].Due, want.Due)
		want.Edits++
		got := f.get("a")
		checkTask(f, "edited", got.Task, want)
		equal(f, "state", got.State, store.StateRetrying)
		equal(f, "attempt", got.Attempt, 1)
		equal(f, "last error", got.LastError, "no luck")
	}
}

func editBoth(f *fixture) {
	f.scheduled("a", "b")
	due := f.now() - 7
	result := f.edit(store.OK, store.Edit{ID: "a", Task: f.changed("a", "other"), Due: due})[0]
	equal(f, "due time told", result.Due, due)
	equal(f, "version told", result.Version, 2)
	_, held := f.tryHold(holdsOf(long, "a"), store.OK)
	equal(f, "payload", string(held[0].Task.Payload), "other")
	equal(f, "due time", held[0].Task.Due, due)
	same(f, "pending tasks", f.window(), []string{"b"})
}

func editNow(f *fixture) {
	f.ready("ready")
	f.scheduled("scheduled")
	due := f.get("ready").Due
	before := f.now()
	stamp, got, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "ready", Now: true}, {ID: "scheduled", Now: true}})
	f.ok("edit", err)
	f.statuses("edit", got, store.OK, store.OK)
	equal(f, "due time of a ready task", f.get("ready").Due, due)
	equal(f, "due time told of it", got[0].Due, due)
	moved := f.get("scheduled").Due
	equal(f, "due time told", got[1].Due, moved)
	if moved < before || moved > store.Millis(stamp.Now.UnixMilli()) {
		f.Fatalf("due time is %d, want %d to %v", moved, before, stamp.Now)
	}
	equal(f, "number of ready tasks", f.stats().Ready, 2)
	f.tryHold(holdsOf(long, "ready", "scheduled"), store.OK, store.OK)
}

func editQuietly(f *fixture) {
	f.ready("a")
	seq := f.seq()
	f.edit(store.OK, store.Edit{ID: "a", Task: f.changed("a", "other")})
	f.edit(store.OK, store.Edit{ID: "a", Now: true})
	f.edit(store.OK, store.Edit{ID: "a"})
	equal(f, "seq when nothing moved", f.seq(), seq)
	f.edit(store.OK, store.Edit{ID: "a", Task: f.changed("a", "other"), Due: 5})
	equal(f, "seq when one moved", f.seq(), seq+1)
}

// editThenAdd repeats the request that made a task after its edit: it is answered as
// before, with the task as it is now, and a different one is refused.
func editThenAdd(f *fixture) {
	due := f.now().Add(long)
	f.add(task("a", due))
	f.edit(store.OK, store.Edit{ID: "a", Task: f.changed("a", "other"), Due: due + 5})
	other := task("a", due)
	other.Fingerprint = 8
	_, results, err := f.s.Add(f.ctx, f.shard, []*store.Task{task("a", due), other})
	f.ok("add", err)
	f.statuses("add", results, store.Duplicate, store.Conflict)
	equal(f, "due time told", results[0].Due, due+5)
	equal(f, "payload", string(f.get("a").Payload), "other")
	equal(f, "version", f.version("a"), 2)
}

// editThenHold checks what a hold reads without the body: expiry and visibility.
func editThenHold(f *fixture) {
	f.ready("longer", "expired", "kept")
	longer, over, kept := f.changed("longer", "x"), f.changed("expired", "x"), f.changed("kept", "x")
	longer.Visibility = 5 * long
	over.Expires = f.now() - 1
	kept.Expires, kept.Visibility = f.now().Add(long), 2*long
	f.edit(store.OK, store.Edit{ID: "longer", Task: longer}, store.Edit{ID: "expired", Task: over}, store.Edit{ID: "kept", Task: kept})
	f.edit(store.OK, store.Edit{ID: "longer", Due: 5}, store.Edit{ID: "expired", Due: 5}, store.Edit{ID: "kept", Due: 5})
	stamp, _ := f.tryHold(holdsOf(long, "longer", "expired", "kept"), store.OK, store.Expired, store.OK)
	f.about("deadline of longer", f.get("longer").Deadline, stamp.Now.Add(5*long))
	f.about("deadline of kept", f.get("kept").Deadline, stamp.Now.Add(2*long))
	f.states(store.StateExpired, "expired")
	_, statuses, err := f.s.Requeue(f.ctx, f.shard, []string{"expired"})
	f.ok("requeue", err)
	f.statuses("requeue", statuses, store.OK)
	got := f.get("expired")
	equal(f, "expiry after requeue", got.Expires, 0)
	equal(f, "version after requeue", f.version("expired"), 3)
	equal(f, "payload after requeue", string(got.Payload), "x")
}

func editTwice(f *fixture) {
	f.scheduled("a", "b")
	first, second := f.changed("a", "first"), f.changed("a", "second")
	second.Edits = 1
	_, got, err := f.s.Edit(f.ctx, f.shard, []store.Edit{
		{ID: "a", Task: first}, {ID: "b", Due: 5}, {ID: "a", Task: first}, {ID: "a", Task: second, Due: 6}, {ID: "b", IfVersion: 1, Due: 7},
	})
	f.ok("edit", err)
	f.statuses("edit", got, store.OK, store.OK, store.Stale, store.OK, store.Stale)
	equal(f, "payload", string(f.get("a").Payload), "second")
	equal(f, "version", f.version("a"), 3)
	same(f, "pending tasks", f.window(), []string{"b", "a"})
}

func editBig(f *fixture) {
	ids := numbered(2500)
	f.add(tasks(f.now().Add(long), ids...)...)
	seq := f.seq()
	edits := make([]store.Edit, len(ids))
	for i, id := range ids {
		edits[i] = store.Edit{ID: id, Due: store.Millis(len(ids) - i), IfVersion: 1}
	}
	f.edit(store.OK, edits...)
	equal(f, "seq", f.seq(), seq+1)
	equal(f, "the first pending task", f.window()[0], ids[len(ids)-1])
	f.edit(store.Stale, edits...)
}

// editExpiry moves tasks past their expiry, where no worker would get them, and their
// expiry before them.
func editExpiry(f *fixture) {
	now := f.now()
	due, expires := now.Add(long), now.Add(2*long)
	a := task("a", due)
	a.Expires = expires
	f.add(a, task("b", due))
	earlier, alone := f.changed("a", "x"), f.changed("b", "x")
	earlier.Expires, alone.Expires = due, due-1
	for _, e := range []store.Edit{{ID: "a", Due: expires}, {ID: "a", Due: expires + 1}, {ID: "a", Task: earlier}, {ID: "b", Task: alone}} {
		before, seq := f.get(e.ID), f.seq()
		f.edit(store.Expired, e)
		checkTask(f, "after a refused edit", f.get(e.ID).Task, before.Task)
		equal(f, "seq", f.seq(), seq)
	}
	later, never := f.changed("a", "later"), f.changed("a", "never")
	later.Expires, never.Expires = 2*expires, 0
	never.Edits += 3
	f.edit(store.OK, store.Edit{ID: "a", Due: expires - 1})
	later.Edits++
	f.edit(store.OK, store.Edit{ID: "a", Due: expires, Task: later})
	f.edit(store.OK, store.Edit{ID: "a", Now: true})
	f.edit(store.OK, store.Edit{ID: "a", Due: 3 * expires, Task: never})

	late := task("late", now-1)
	late.Expires = now.Add(long)
	f.add(late)
	f.nack(store.Nack{ID: "late", Token: f.hold("late")[0], Delay: 2 * long}) // its retry comes past its expiry
	f.edit(store.OK, store.Edit{ID: "late", Task: f.changed("late", "x")})
	f.edit(store.Expired, store.Edit{ID: "late", Due: late.Expires})
	f.edit(store.OK, store.Edit{ID: "late", Now: true})
}

// editLanes gives tasks other traits, with and without a move.
func editLanes(f *fixture) {
	f.scheduled("a", "b")
	seq := f.seq()
	high := &store.Traits{Priority: 7, FairnessKey: "k", RateKey: "o"}
	first, second := f.changed("a", "x"), f.changed("b", "x")
	first.Traits, second.Traits = high, &store.Traits{Priority: 7, FairnessKey: "k"}
	for i, result := range f.edit(store.OK, store.Edit{ID: "a", Task: first}, store.Edit{ID: "b", Task: second, Due: f.now().Add(2 * long)}) {
		if !result.Moved || !result.Traits.Same([]*store.Traits{first.Traits, second.Traits}[i]) {
			f.Fatalf("result of other traits is %+v", result)
		}
	}
	equal(f, "seq", f.seq(), seq+1)
	lane := high.Lane()
	inLane := func(want ...string) {
		f.Helper()
		_, entries, err := f.s.Window(f.ctx, f.shard, store.WindowQuery{To: f.now().Add(1000 * long), Limit: 10, Lane: &lane})
		f.ok("window of the lane", err)
		same(f, "tasks of the lane", idsOf(entries), want)
	}
	inLane("a", "b")
	moved := f.edit(store.OK, store.Edit{ID: "b", Due: 5})[0]
	if !moved.Traits.Same(second.Traits) {
		f.Fatalf("traits of a moved task are %+v", moved.Traits)
	}
	inLane("b", "a")
	plain, kept := f.changed("b", "y"), f.changed("a", "y")
	plain.Traits = nil
	results := f.edit(store.OK, store.Edit{ID: "b", Task: plain}, store.Edit{ID: "a", Task: kept})
	if !results[0].Moved || results[0].Traits != nil || results[1].Moved || !results[1].Traits.Same(high) {
		f.Fatalf("results are %+v", results)
	}
	inLane("a")
	_, held := f.tryHold(holdsOf(long, "b"), store.OK)
	if held[0].Task.Traits != nil {
		f.Fatalf("traits of the held task are %+v", held[0].Task.Traits)
	}
	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("a"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK)
	inLane()
	heads, err := f.s.Lanes(f.ctx, f.shard, nil, 10)
	f.ok("lanes", err)
	equal(f, "number of lanes", len(heads), 0)
}

// concurrentEdits lets a crowd edit tasks that the others hold at the same moment: no
// edit is lost, none is made behind a hold, and a worker has the last that was made.
func concurrentEdits(f *fixture) {
	ids := numbered(60)
	f.ready(ids...)
	var edited, held [crowd]int
	delivered := make([]*store.Task, len(ids))
	f.together(func(member int) error {
		for round := range ids {
			at := (round + member*7) % len(ids)
			if member == 0 {
				_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, ids[at]))
				if err != nil || results[0].Status != store.OK {
					return fmt.Errorf("hold: %v, %w", results, err)
				}
				held[member]++
				delivered[at] = results[0].Task
				continue
			}
			n, err := f.raceToEdit(ids[at], fmt.Sprintf("%d-%d", member, round))
			if err != nil {
				return err
			}
			edited[member] += n
		}
		return nil
	})
	equal(f, "number of holds", sum(held[:]), len(ids))
	versions := 0
	for _, t := range delivered {
		versions += int(t.Edits)
		checkTask(f, "the task that was delivered", f.get(t.ID).Task, *t)
	}
	equal(f, "number of edits in the delivered tasks", versions, sum(edited[:]))
}

// raceToEdit reads a task and edits it in that version, and reports how many edits
// were made: 1 or 0.
func (f *fixture) raceToEdit(id, payload string) (int, error) {
	_, found, err := f.s.Get(f.ctx, f.shard, []string{id})
	if err != nil {
		return 0, err
	}
	next := found[0].Task
	next.Payload = []byte(payload)
	_, results, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: id, Task: &next}})
	if err != nil {
		return 0, err
	}
	switch results[0].Status {
	case store.OK:
		return 1, nil
	case store.Stale, store.WrongState:
		return 0, nil
	}
	return 0, fmt.Errorf("status of a racing edit is %s", results[0].Status)
}

// newEdit draws an edit: a move, a promotion or other contents, mostly of the version
// that the task has.
func (p *pair) newEdit(rt *rapid.T, id string) store.Edit {
	_, found, err := p.sides[0].Get(rt.Context(), p.shard, []string{id})
	if err != nil {
		rt.Fatalf("get: %v", err)
	}
	e, edits := store.Edit{ID: id}, found[0].Edits
	if !often(rt, "current version") {
		edits++
	}
	if rapid.Bool().Draw(rt, "if version") {
		e.IfVersion = edits + 1
	}
	if rapid.Bool().Draw(rt, "moved") {
		e.Due = p.moment(rt, "new due", -4, 3)
	} else {
		e.Now = rapid.Bool().Draw(rt, "now")
	}
	if rapid.Bool().Draw(rt, "contents") {
		e.Task = p.newTask(rt, id)
		e.Task.Edits = edits
	}
	return e
}

func (p *pair) edit(rt *rapid.T) {
	edits := batchOf(rt, func(id string) store.Edit { return p.newEdit(rt, id) })
	p.both(rt, "edit", func(s *side) (any, error) {
		stamp, results, err := s.Edit(rt.Context(), p.shard, edits)
		for i := range results {
			results[i].Due = p.round(results[i].Due)
		}
		return []any{stamp.Seq, results}, err
	})
	p.pass(rt)
}
