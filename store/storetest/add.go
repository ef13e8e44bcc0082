package storetest

import (
	"math"
	"reflect"
	"time"

	"github.com/ddq-io/ddq/store"
)

func addCases() []entry {
	return []entry{
		{"Add/NewTasksBecomePending", addNew},
		{"Add/SameRequestIsADuplicate", addDuplicate},
		{"Add/OtherRequestIsAConflict", addConflict},
		{"Add/FingerprintsAreComparedInFull", addFingerprint},
		{"Add/ReplacesWhatIsOver", addReplaces},
		{"Add/InheritsNothing", addInherits},
		{"Add/SameIDTwiceInOneBatch", addTwiceInBatch},
		{"Add/BigBatch", addBig},
		{"Add/IgnoresTheStoresFields", addIgnores},
		{"Add/KeepsNothingOfTheCaller", addCopies},
	}
}

func addNew(f *fixture) {
	now := f.now()
	stamp, results, err := f.s.Add(f.ctx, f.shard, []*store.Task{task("late", now.Add(long)), task("ready", now-1), task("ancient", 1)})
	f.ok("add", err)
	f.statuses("add", results, store.Added, store.Added, store.Added)
	equal(f, "due time", results[0].Due, now.Add(long))
	equal(f, "due time in the past", results[1].Due, now-1)
	equal(f, "replaced state", results[0].Replaced, store.StateUnknown)
	equal(f, "seq", stamp.Seq, 1)

	f.states(store.StateScheduled, "late")
	f.states(store.StateReady, "ready", "ancient")
	f.states(store.StateUnknown, "absent")
	same(f, "pending tasks", f.window(), []string{"ancient", "ready", "late"})
}

func addDuplicate(f *fixture) {
	due := f.now().Add(long)
	f.add(task("pending", due))
	token := f.held("running")
	runningDue := f.get("running").Due

	again := []*store.Task{task("pending", due.Add(long)), task("running", due)}
	_, results, err := f.s.Add(f.ctx, f.shard, again)
	f.ok("add", err)
	f.statuses("add", results, store.Duplicate, store.Duplicate)
	equal(f, "due time of the stored task", results[0].Due, due)
	equal(f, "state", results[0].State, store.StateScheduled)
	equal(f, "token of a pending task", results[0].Token, store.Token{})
	equal(f, "due time of the running task", results[1].Due, runningDue)
	equal(f, "state", results[1].State, store.StateRunning)
	equal(f, "token of the running task", results[1].Token, token)
	equal(f, "due time after the duplicate", f.get("pending").Due, due)
}

func addConflict(f *fixture) {
	f.scheduled("pending")
	f.held("running")
	var others []*store.Task
	for _, id := range []string{"pending", "running"} {
		other := task(id, 5)
		other.Payload, other.Fingerprint = []byte("other"), 8
		others = append(others, other)
	}
	_, results, err := f.s.Add(f.ctx, f.shard, others)
	f.ok("add", err)
	f.statuses("add", results, store.Conflict, store.Conflict)
	equal(f, "state", results[0].State, store.StateScheduled)
	equal(f, "state", results[1].State, store.StateRunning)
	equal(f, "payload after the conflict", string(f.get("pending").Payload), "payload of pending")
	f.states(store.StateRunning, "running")
}

func addFingerprint(f *fixture) {
	for id, fingerprint := range map[string]uint64{"big": math.MaxUint64, "sign": 1 << 63, "exact": 1<<53 + 1, "zero": 0} {
		t := task(id, f.now().Add(long))
		t.Fingerprint = fingerprint
		f.add(t)
		equal(f, "fingerprint of "+id, f.get(id).Fingerprint, fingerprint)
		other := *t
		other.Fingerprint ^= 1 // lost where numbers are floats
		_, results, err := f.s.Add(f.ctx, f.shard, []*store.Task{t, &other})
		f.ok("add", err)
		f.statuses("add "+id, results, store.Duplicate, store.Conflict)
	}
}

func addReplaces(f *fixture) {
	f.done("done")
	f.dead("dead")
	f.expired("expired")
	due := f.now().Add(long)
	batch := tasks(due, "done", "dead", "expired")
	batch[1].Fingerprint = 8 // nothing lives under the id: another request may have it
	batch[2].Payload = nil
	_, results, err := f.s.Add(f.ctx, f.shard, batch)
	f.ok("add", err)
	f.statuses("add", results, store.Added, store.Added, store.Added)
	for i, want := range []store.State{store.StateDone, store.StateDead, store.StateExpired} {
		equal(f, "replaced state", results[i].Replaced, want)
		got := f.get(batch[i].ID)
		equal(f, "state", got.State, store.StateScheduled)
		equal(f, "attempt", got.Attempt, 0)
		equal(f, "last error", got.LastError, "")
		equal(f, "reason", got.Reason, store.ReasonNone)
		equal(f, "finished", got.Finished, 0)
		equal(f, "payload", string(got.Payload), string(batch[i].Payload))
	}
	stats := f.stats()
	equal(f, "number of done tasks", stats.Done, 0)
	equal(f, "number of dead tasks", stats.Dead, 0)
	equal(f, "number of pending tasks", stats.Pending, 3)
	for _, kind := range []store.Kind{store.KindDone, store.KindDead} {
		equal(f, "length of the list", len(f.walk(kind, 10)), 0)
	}
}

// addInherits ends tasks that have a history in every way there is, and adds
// their ids anew.
func addInherits(f *fixture) {
	ends := map[string]func(id string, token store.Token){
		"acked": func(id string, token store.Token) { f.ack(0, store.OK, store.Ack{ID: id, Token: token}) },
		"done":  func(id string, token store.Token) { f.ack(long, store.OK, store.Ack{ID: id, Token: token}) },
		"dead": func(id string, token store.Token) {
			f.nack(store.Nack{ID: id, Token: token, Reason: store.ReasonPermanent})
		},
		"removed": func(id string, token store.Token) {
			f.nack(store.Nack{ID: id, Token: token})
			_, _, err := f.s.Remove(f.ctx, f.shard, store.Removals(id))
			f.ok("remove", err)
		},
		"removed dead": func(id string, token store.Token) {
			f.nack(store.Nack{ID: id, Token: token, Reason: store.ReasonPermanent})
			_, _, err := f.s.RemoveDead(f.ctx, f.shard, []string{id})
			f.ok("remove dead", err)
		},
		"trimmed": func(id string, token store.Token) {
			f.ack(time.Millisecond, store.OK, store.Ack{ID: id, Token: token})
			waitUntil(f, f.s, f.now()+3)
			f.trim(100, 1)
		},
		"dropped": func(string, store.Token) { f.ok("drop", f.s.DropShard(f.ctx, f.shard)) },
	}
	for id, end := range ends {
		first := f.nack(store.Nack{ID: id, Token: f.held(id), Error: "no luck"})
		waitUntil(f, f.s, first.Due)
		end(id, f.hold(id)[0])

		f.ready(id)
		got := f.get(id)
		want := store.Snapshot{State: store.StateReady, Task: *task(id, got.Due)}
		want.Payload, got.Payload = nil, nil
		if !reflect.DeepEqual(got, want) {
			f.Fatalf("task added after it was %s: got %+v, want %+v", id, got, want)
		}
		_, held := f.tryHold(holdsOf(long, id), store.OK)
		equal(f, "attempt after it was "+id, held[0].Task.Attempt, 1)
		equal(f, "last error after it was "+id, held[0].Task.LastError, "")
	}
}

func addTwiceInBatch(f *fixture) {
	due := f.now().Add(long)
	other := task("a", due)
	other.Fingerprint = 8
	stamp, results, err := f.s.Add(f.ctx, f.shard, []*store.Task{task("a", due), task("b", due), task("a", due.Add(long)), other})
	f.ok("add", err)
	f.statuses("add", results, store.Added, store.Added, store.Duplicate, store.Conflict)
	equal(f, "due time of the duplicate", results[2].Due, due)
	equal(f, "state of the duplicate", results[2].State, store.StateScheduled)
	equal(f, "seq", stamp.Seq, 1)
	equal(f, "number of pending tasks", f.stats().Pending, 2)
	same(f, "pending tasks", f.window(), []string{"a", "b"})
}

// addBig takes 5,000 tasks through a whole life in one call each.
func addBig(f *fixture) {
	ids := numbered(5000)
	f.ready(ids...)
	equal(f, "number of pending tasks", f.stats().Pending, 5000)
	f.states(store.StateReady, ids...)
	_, again, err := f.s.Add(f.ctx, f.shard, tasks(1, ids...))
	f.ok("add again", err)
	f.statuses("add again", again, repeat(store.Duplicate, len(ids))...)

	tokens := f.hold(ids...)
	stats := f.stats()
	equal(f, "number of pending tasks", stats.Pending, 0)
	equal(f, "number of running tasks", stats.Running, 5000)

	extends, nacks, acks := make([]store.Extend, len(ids)), make([]store.Nack, 2500), make([]store.Ack, 2500)
	for i, id := range ids {
		extends[i] = store.Extend{ID: id, Token: tokens[i], Visibility: long}
		if i < 2500 {
			acks[i] = store.Ack{ID: id, Token: tokens[i]}
		} else {
			nacks[i-2500] = store.Nack{ID: id, Token: tokens[i], Delay: long}
		}
	}
	_, extended, err := f.s.Extend(f.ctx, f.shard, extends)
	f.ok("extend", err)
	f.statuses("extend", extended, repeat(store.OK, len(ids))...)
	f.ack(long, store.OK, acks...)
	_, nacked, err := f.s.Nack(f.ctx, f.shard, nacks)
	f.ok("nack", err)
	f.statuses("nack", nacked, repeat(store.OK, len(nacks))...)
	stats = f.stats()
	equal(f, "number of pending tasks", stats.Pending, 2500)
	equal(f, "number of done tasks", stats.Done, 2500)
	equal(f, "number of running tasks", stats.Running, 0)

	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals(ids[2500:]...))
	f.ok("remove", err)
	f.statuses("remove", removed, repeat(store.OK, 2500)...)
	f.states(store.StateUnknown, ids[2500:]...)
	f.states(store.StateDone, ids[:2500]...)
}

func addIgnores(f *fixture) {
	t := task("a", f.now().Add(long))
	t.Attempt, t.LastError = 3, "from another life"
	f.add(t)
	got := f.get("a")
	equal(f, "attempt", got.Attempt, 0)
	equal(f, "last error", got.LastError, "")
	equal(f, "state", got.State, store.StateScheduled)
}

func addCopies(f *fixture) {
	t := task("a", f.now()-1000)
	t.Attributes = []store.Attribute{{Key: "k", Value: "v"}}
	t.Backoff = &store.Backoff{Kind: store.BackoffFixed, Base: long}
	f.add(t)
	spoil(t)
	checkUnspoilt(f, "stored task", f.get("a").Task)

	got := f.get("a").Task
	spoil(&got)
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, "a"))
	f.ok("hold", err)
	checkUnspoilt(f, "held task", *one(f, results).Task)
	spoil(results[0].Task)
	checkUnspoilt(f, "running task", f.get("a").Task)
}

// spoil overwrites everything that t points to.
func spoil(t *store.Task) {
	clear(t.Payload)
	t.Attributes[0] = store.Attribute{Key: "spoilt", Value: "spoilt"}
	t.Backoff.Base = 0
}

func checkUnspoilt(f *fixture, what string, t store.Task) {
	f.Helper()
	equal(f, "payload of the "+what, string(t.Payload), "payload of a")
	same(f, "attributes of the "+what, t.Attributes, []store.Attribute{{Key: "k", Value: "v"}})
	if t.Backoff == nil || t.Backoff.Base != long {
		f.Fatalf("backoff of the %s is %v", what, t.Backoff)
	}
}
