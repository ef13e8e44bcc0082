package storetest

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

func journalCases() []entry {
	return []entry{
		{"Journal/ComesWithLaterAttempts", journalComes},
		{"Journal/CanBeRead", journalRead},
		{"Journal/OfTheSameHoldAgain", journalAgain},
		{"Journal/FirstEntryOfANameStays", journalFirst},
		{"Journal/NotWithoutTheHold", journalRefused},
		{"Journal/BoundOfNames", journalNames},
		{"Journal/BoundOfBytes", journalBytes},
		{"Journal/StaysWithADeadLetter", journalDead},
		{"Journal/StaysThroughEditsAndReleases", journalEdited},
		{"Journal/GoesWithTheTask", journalGone},
		{"Journal/GoesWhenTheTaskIsReplaced", journalReplaced},
		{"Journal/GoesByCommit", journalCommitted},
		{"Journal/OfATaskThatTells", journalTells},
		{"Journal/OfManyTasks", journalMany},
		{"Journal/LargeOnesAreLeftOut", journalLarge},
		{"Journal/InASealedShard", journalSealed},
	}
}

// checkpoint adds entries to the journal of a task, each with its name behind "of " for a value.
func (f *fixture) checkpoint(id string, token store.Token, want store.Status, names ...string) {
	f.Helper()
	batch := make([]store.Checkpoint, len(names))
	for i, name := range names {
		batch[i] = store.Checkpoint{ID: id, Token: token, JournalEntry: store.JournalEntry{Name: name, Value: []byte("of " + name)}}
	}
	_, got, err := f.s.Checkpoint(f.ctx, f.shard, batch)
	f.ok("checkpoint", err)
	f.statuses("checkpoint", got, repeat(want, len(names))...)
}

// again holds a task, checks which names its journal has, and returns the token.
func (f *fixture) again(id string, want ...string) store.Token {
	f.Helper()
	hold := holdsOf(long, id)
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, hold)
	f.ok("hold", err)
	f.statuses("hold", results, store.OK)
	f.journal(results[0].Task, want...)
	return hold[0].Token
}

// journal checks which names the journal of a task has.
func (f *fixture) journal(t *store.Task, want ...string) {
	f.Helper()
	got, wanted := map[string]string{}, map[string]string{}
	for _, e := range t.Journal {
		got[e.Name] = string(e.Value)
	}
	for _, name := range want {
		wanted[name] = "of " + name
	}
	if !maps.Equal(got, wanted) || len(t.Journal) != len(want) {
		f.Fatalf("journal of %q is %.500v, want %.500v", t.ID, got, wanted)
	}
}

// begun adds a task, holds it and gives it a journal with the name "one".
func (f *fixture) begun(t *store.Task) store.Token {
	f.Helper()
	f.add(t)
	token := f.again(t.ID)
	f.checkpoint(t.ID, token, store.OK, "one")
	return token
}

// afresh checks that the next task of an id, which it adds unless there is one, has no journal,
// and deletes it.
func (f *fixture) afresh(how, id string) {
	f.Helper()
	f.Logf("after %s", how)
	if f.get(id).State == store.StateUnknown {
		f.ready(id)
	}
	f.nack(store.Nack{ID: id, Token: f.again(id), Outcome: store.OutcomeFailed, Error: "no"})
	token := f.again(id)
	f.checkpoint(id, token, store.OK, "two")
	f.nack(store.Nack{ID: id, Token: token, Outcome: store.OutcomeFailed, Error: "no"})
	f.ack(0, store.OK, store.Ack{ID: id, Token: f.again(id, "two")})
}

func ready(f *fixture, id string) *store.Task { f.Helper(); return task(id, f.now()-1000) }

func journalComes(f *fixture) {
	f.ready("a", "b", "c")
	tokens := f.hold("a", "b", "c")
	f.checkpoint("a", tokens[0], store.OK, "one")
	f.checkpoint("a", tokens[0], store.OK, "two", "three")
	f.checkpoint("b", tokens[1], store.OK, "one")
	for i, id := range []string{"a", "b", "c"} {
		f.nack(store.Nack{ID: id, Token: tokens[i], Outcome: store.OutcomeFailed, Error: "no"})
	}
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(short, "a", "b", "c"))
	f.ok("hold", err)
	f.statuses("hold", results, store.OK, store.OK, store.OK)
	f.journal(results[0].Task, "one", "two", "three")
	f.journal(results[1].Task, "one")
	f.journal(results[2].Task)

	token := f.get("a").Token
	f.checkpoint("a", token, store.OK, "four")
	waitUntil(f, f.s, f.get("a").Deadline+1)
	f.checkpoint("a", token, store.OK, "late") // until it is recovered
	_, recovered, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: "a", Token: token, Outcome: store.OutcomeHoldExpired}})
	f.ok("recover", err)
	f.statuses("recover", recovered, store.OK)
	f.again("a", "one", "two", "three", "four", "late")
}

// journalRead reads journals of tasks in each of their states, without changing them.
func journalRead(f *fixture) {
	read := func(id string, want ...string) {
		f.Helper()
		entries, err := f.s.Journal(f.ctx, f.shard, id)
		f.ok("journal", err)
		f.journal(&store.Task{ID: id, Journal: entries}, want...)
	}
	before := f.now()
	f.ready("plain")
	token := f.begun(ready(f, "a"))
	read("absent")
	read("plain")
	read("a", "one")
	waitUntil(f, f.s, f.now()+2)
	between := f.now()
	f.checkpoint("a", token, store.OK, "two")
	f.checkpoint("a", token, store.Already, "one")
	kept := make(map[string]store.Millis)
	entries, err := f.s.Journal(f.ctx, f.shard, "a")
	f.ok("journal", err)
	for _, e := range entries {
		kept[e.Name] = e.Kept
	}
	if one, two := kept["one"], kept["two"]; one < before || one >= between || two < between || two > f.now() {
		f.Fatalf("kept at %v, want one from %d and before %d, and two from then to %d", kept, before, between, f.now())
	}

	f.nack(store.Nack{ID: "a", Token: token, Outcome: store.OutcomeFailed, Error: "no"})
	read("a", "one", "two")
	token = f.again("a", "one", "two")
	f.nack(store.Nack{ID: "a", Token: token, Reason: store.ReasonPermanent})
	read("a", "one", "two") // of a dead letter
	_, _, err = f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.ack(long, store.OK, store.Ack{ID: "a", Token: f.again("a", "one", "two")})
	read("a") // of a task that is done
}

func journalAgain(f *fixture) {
	f.nack(store.Nack{ID: "a", Token: f.begun(ready(f, "a")), Outcome: store.OutcomeFailed})
	hold := holdsOf(long, "a")
	for range 2 {
		_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, hold)
		f.ok("hold", err)
		f.statuses("hold", results, store.OK)
		f.journal(results[0].Task, "one")
	}
}

func journalFirst(f *fixture) {
	token := f.begun(ready(f, "a"))
	_, got, err := f.s.Checkpoint(f.ctx, f.shard, []store.Checkpoint{
		{ID: "a", Token: token, JournalEntry: store.JournalEntry{Name: "one", Value: []byte("another")}},
		{ID: "a", Token: token, JournalEntry: store.JournalEntry{Name: "two", Value: []byte("of two")}},
		{ID: "a", Token: token, JournalEntry: store.JournalEntry{Name: "two"}},
	})
	f.ok("checkpoint", err)
	f.statuses("checkpoint", got, store.Already, store.OK, store.Already)
	f.nack(store.Nack{ID: "a", Token: token, Outcome: store.OutcomeFailed})
	token = f.again("a", "one", "two")
	f.checkpoint("a", token, store.Already, "one")
	f.ack(0, store.OK, store.Ack{ID: "a", Token: token})
}

func journalRefused(f *fixture) {
	token := f.held("a")
	f.checkpoint("a", store.NewToken(), store.Stale, "x", "y")
	f.nack(store.Nack{ID: "a", Token: token, Outcome: store.OutcomeFailed, Error: "no"})
	f.checkpoint("a", token, store.WrongState, "x")
	next := f.again("a")
	f.checkpoint("a", token, store.Stale, "x") // of the attempt before
	f.checkpoint("a", next, store.OK, "one")
	f.nack(store.Nack{ID: "a", Token: next, Reason: store.ReasonPermanent})
	f.checkpoint("a", next, store.WrongState, "x")
	f.checkpoint("absent", token, store.NotFound, "x")
	done := f.done("b")
	f.checkpoint("b", done, store.WrongState, "x")
	_, _, err := f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.again("a", "one")

	other := f.held("c")
	_, got, err := f.s.Checkpoint(f.ctx, f.shard, []store.Checkpoint{
		{ID: "absent", JournalEntry: store.JournalEntry{Name: "x"}},
		{ID: "c", Token: other, JournalEntry: store.JournalEntry{Name: "x", Value: []byte("of x")}},
		{ID: "b", Token: done, JournalEntry: store.JournalEntry{Name: "x"}},
	})
	f.ok("checkpoint", err)
	f.statuses("checkpoint", got, store.NotFound, store.OK, store.WrongState)
	f.nack(store.Nack{ID: "c", Token: other})
	f.again("c", "x")
}

func journalNames(f *fixture) {
	token := f.held("a")
	names := make([]string, store.MaxJournalNames)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", strings.Repeat("n", store.MaxJournalName-4), i)
	}
	f.checkpoint("a", token, store.OK, names...)
	f.checkpoint("a", token, store.JournalFull, "one more")
	f.checkpoint("a", token, store.Already, names[7])
	f.nack(store.Nack{ID: "a", Token: token})
	token = f.again("a", names...)
	f.checkpoint("a", token, store.JournalFull, "one more")
	f.ack(long, store.OK, store.Ack{ID: "a", Token: token})
}

func journalBytes(f *fixture) {
	token := f.held("a")
	write := func(want store.Status, name string, size int) {
		f.Helper()
		e := store.JournalEntry{Name: name, Value: bytes.Repeat([]byte{'v'}, size)}
		_, got, err := f.s.Checkpoint(f.ctx, f.shard, []store.Checkpoint{{ID: "a", Token: token, JournalEntry: e}})
		f.ok("checkpoint", err)
		f.statuses("checkpoint", got, want)
	}
	for i := range 3 {
		write(store.OK, fmt.Sprint(i), store.MaxJournalValue-1)
	}
	write(store.JournalFull, "3", store.MaxJournalValue)
	write(store.OK, "3", store.MaxJournalValue-2)
	write(store.JournalFull, "4", 1)
	write(store.OK, "4", 0)
	write(store.JournalFull, "5", 0)
	f.nack(store.Nack{ID: "a", Token: token})
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, "a"))
	f.ok("hold", err)
	f.statuses("hold", results, store.OK)
	equal(f, "entries", len(results[0].Task.Journal), 5)
}

func journalDead(f *fixture) {
	f.nack(store.Nack{ID: "a", Token: f.begun(ready(f, "a")), Reason: store.ReasonPermanent, Error: "no"})
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK)
	token := f.again("a", "one")
	f.checkpoint("a", token, store.OK, "two")
	f.nack(store.Nack{ID: "a", Token: token, Reason: store.ReasonMaxRetries})
	_, _, err = f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.again("a", "one", "two")

	expires := task("e", f.now()-1000)
	expires.Expires = f.now().Add(20 * short)
	token = f.begun(expires)
	f.nack(store.Nack{ID: "e", Token: token, Outcome: store.OutcomeFailed})
	waitUntil(f, f.s, expires.Expires+1)
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, "e"))
	f.ok("hold", err)
	f.statuses("hold", results, store.Expired)
	_, _, err = f.s.Requeue(f.ctx, f.shard, []string{"e"})
	f.ok("requeue", err)
	f.again("e", "one")
}

func journalEdited(f *fixture) {
	token := f.begun(ready(f, "a"))
	f.nack(store.Nack{ID: "a", Token: token, Uncount: true}) // as if it had never been held
	equal(f, "attempt", f.get("a").Attempt, 0)
	_, edited, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Due: f.now() - 5}})
	f.ok("edit", err)
	f.statuses("edit", edited, store.OK)
	token = f.again("a", "one")
	_, _, err = f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: "a", Token: token, Visibility: long}})
	f.ok("extend", err)
	f.cancel(store.OK, "a")
	f.checkpoint("a", token, store.OK, "two")
	f.nack(store.Nack{ID: "a", Token: token})
	equal(f, "state", f.get("a").State, store.StateDead) // its end was asked for
	_, _, err = f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.again("a", "one", "two")
}

// journalGone checks that no way out leaves a journal to the next task of the id.
func journalGone(f *fixture) {
	failed := func(reason store.Reason) {
		f.Helper()
		f.nack(store.Nack{ID: "a", Token: f.begun(ready(f, "a")), Outcome: store.OutcomeFailed, Reason: reason, Error: "no"})
	}
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.begun(ready(f, "a"))})
	f.afresh("an ack", "a")

	failed(store.ReasonNone)
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.again("a", "one")})
	f.afresh("an ack of a later attempt", "a")

	f.ack(short, store.OK, store.Ack{ID: "a", Token: f.begun(ready(f, "a"))})
	waitUntil(f, f.s, f.now().Add(2*short))
	if n, err := f.s.Trim(f.ctx, f.shard, 10); n != 1 || err != nil {
		f.Fatalf("trimmed %d, %v", n, err)
	}
	f.afresh("the retention", "a")

	failed(store.ReasonNone)
	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("a"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK)
	f.afresh("a delete", "a")

	failed(store.ReasonPermanent)
	_, dead, err := f.s.RemoveDead(f.ctx, f.shard, []string{"a"})
	f.ok("remove dead", err)
	f.statuses("remove dead", dead, store.OK)
	f.afresh("the dead letter was deleted", "a")

	failed(store.ReasonPermanent)
	n, err := f.s.TrimDead(f.ctx, f.shard, store.Entry{Due: f.now(), ID: "z"}, 10)
	f.ok("trim dead", err)
	equal(f, "trimmed", n, 1)
	f.afresh("the dead letter was trimmed", "a")

	failed(store.ReasonPermanent)
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	f.afresh("the shard was dropped", "a")
}

func journalReplaced(f *fixture) {
	f.nack(store.Nack{ID: "a", Token: f.begun(ready(f, "a")), Reason: store.ReasonPermanent})
	f.ready("a")
	f.afresh("the dead letter was replaced", "a")

	f.ack(long, store.OK, store.Ack{ID: "a", Token: f.begun(ready(f, "a"))})
	f.ready("a")
	f.afresh("the done task was replaced", "a")

	f.nack(store.Nack{ID: "a", Token: f.begun(ready(f, "a")), Reason: store.ReasonPermanent})
	_, added, err := f.s.HoldNew(f.ctx, f.shard, f.fence, tasks(f.now()-1000, "a"), holdsOf(long, "a"))
	f.ok("hold new", err)
	f.statuses("hold new", added, store.Held)
	f.nack(store.Nack{ID: "a", Token: f.get("a").Token})
	f.afresh("the dead letter was replaced and held", "a")

	keyed := func(id string) *store.Task {
		t := ready(f, id)
		t.Key = &store.Key{Text: "k", OnConflict: store.KeyReplace}
		return t
	}
	add := func(id string, want store.Status) {
		f.Helper()
		_, added, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{keyed(id)})
		f.ok("add keyed", err)
		f.statuses("add keyed", added, want)
	}
	add("a", store.Added)
	token := f.again("a")
	f.checkpoint("a", token, store.OK, "one")
	f.nack(store.Nack{ID: "a", Token: token, Outcome: store.OutcomeFailed})
	add("b", store.Replaced)
	f.afresh("a replacement by key", "a")

	add("a", store.Added)
	token = f.again("a")
	f.checkpoint("a", token, store.OK, "one")
	f.nack(store.Nack{ID: "a", Token: token, Reason: store.ReasonPermanent})
	add("a", store.Added)
	f.afresh("the dead letter was replaced by one with a key", "a")
}

// journalCommitted ends tasks by commits.
func journalCommitted(f *fixture) {
	cells, ok := f.s.(store.Cells)
	if !ok {
		f.Skip("no cells")
	}
	commit := func(c store.Commit) {
		f.Helper()
		_, results, err := cells.Commit(f.ctx, f.shard, nil, []store.Commit{c})
		f.ok("commit", err)
		f.statuses("commit", results, store.OK)
	}
	for _, retention := range []time.Duration{0, long} {
		token := f.begun(ready(f, "a"))
		commit(store.Commit{Acks: []store.Ack{{ID: "a", Token: token}}, Retention: retention})
		if retention > 0 {
			f.ready("a")
		}
		f.afresh("an ack by a commit", "a")
	}
	f.nack(store.Nack{ID: "a", Token: f.begun(ready(f, "a"))})
	commit(store.Commit{Removes: []store.Remove{{ID: "a"}}})
	f.afresh("a removal by a commit", "a")

	f.nack(store.Nack{ID: "a", Token: f.begun(ready(f, "a")), Reason: store.ReasonPermanent})
	commit(store.Commit{Adds: tasks(f.now()-1000, "a")})
	f.afresh("the dead letter was replaced by a commit", "a")

	token := f.begun(ready(f, "a"))
	commit(store.Commit{Under: []store.Holder{{ID: "a", Token: token}}, Adds: tasks(f.now()-1000, "b")})
	f.checkpoint("a", token, store.OK, "two")
	f.nack(store.Nack{ID: "a", Token: token})
	f.again("a", "one", "two")
}

// journalTells: what a task tells and its journal do not get into each other's way.
func journalTells(f *fixture) {
	told := func(id string) *store.Task {
		t := ready(f, id)
		t.Tells = "srun"
		return t
	}
	token := f.begun(told("a"))
	equal(f, "cell", f.get("a").Tells, "srun")
	f.nack(store.Nack{ID: "a", Token: token, Outcome: store.OutcomeFailed})
	hold := holdsOf(long, "a")
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, hold)
	f.ok("hold", err)
	f.statuses("hold", results, store.OK)
	equal(f, "cell of the held task", results[0].Task.Tells, "srun")
	f.journal(results[0].Task, "one")
	f.ack(long, store.OK, store.Ack{ID: "a", Token: hold[0].Token, Say: []byte("said")})
	equal(f, "cell of the done task", f.get("a").Tells, "srun")

	f.add(told("b"))
	f.ack(0, store.OK, store.Ack{ID: "b", Token: f.again("b")})
	f.ack(0, store.OK, store.Ack{ID: "c", Token: f.begun(ready(f, "c"))})
	f.nack(store.Nack{ID: "d", Token: f.begun(told("d")), Reason: store.ReasonPermanent})
	if cells, ok := f.s.(store.Cells); ok {
		parcels, err := cells.Parcels(f.ctx, f.shard, store.InBox, 0, 10)
		f.ok("parcels", err)
		ended := make([]string, len(parcels))
		for i, p := range parcels {
			equal(f, "cell that is told", p.To, "srun")
			ended[i] = p.Ended.ID
		}
		same(f, "tasks that told their end", ended, []string{"a", "b", "d"})
	}
}

func journalMany(f *fixture) {
	ids := numbered(1200)
	f.ready(ids...)
	checkpoints := make([]store.Checkpoint, len(ids))
	tokens := f.hold(ids...)
	for i, id := range ids {
		checkpoints[i] = store.Checkpoint{ID: id, Token: tokens[i], JournalEntry: store.JournalEntry{Name: "one", Value: []byte("of one")}}
	}
	_, got, err := f.s.Checkpoint(f.ctx, f.shard, checkpoints)
	f.ok("checkpoint", err)
	f.statuses("checkpoint", got, repeat(store.OK, len(ids))...)
	nacks := make([]store.Nack, len(ids))
	for i, id := range ids {
		nacks[i] = store.Nack{ID: id, Token: tokens[i], Outcome: store.OutcomeFailed, Error: "no"}
	}
	_, _, err = f.s.Nack(f.ctx, f.shard, nacks)
	f.ok("nack", err)
	holds := holdsOf(long, ids...)
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holds)
	f.ok("hold", err)
	acks := make([]store.Ack, len(ids))
	for i, r := range results {
		f.journal(r.Task, "one")
		acks[i] = store.Ack{ID: ids[i], Token: holds[i].Token}
	}
	f.ack(0, store.OK, acks...)
}

// journalLarge: journals count like bodies, of which an answer has so many bytes.
func journalLarge(f *fixture) {
	ids := numbered(7)
	f.ready(ids...)
	value := bytes.Repeat([]byte{'v'}, store.MaxJournalValue-1)
	tokens := f.hold(ids...)
	for i, id := range ids {
		for _, name := range []string{"1", "2", "3", "4"} {
			_, got, err := f.s.Checkpoint(f.ctx, f.shard, []store.Checkpoint{{ID: id, Token: tokens[i], JournalEntry: store.JournalEntry{Name: name, Value: value}}})
			f.ok("checkpoint", err)
			f.statuses("checkpoint", got, store.OK)
		}
		f.nack(store.Nack{ID: id, Token: tokens[i], Outcome: store.OutcomeFailed})
	}
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, ids...))
	f.ok("hold", err)
	f.statuses("hold", results, store.OK, store.OK, store.OK, store.OK, store.LeftOut, store.LeftOut, store.LeftOut)
	for _, r := range results[:4] {
		equal(f, "entries", len(r.Task.Journal), 4)
	}
	f.states(store.StateReady, ids[4:]...)
}

func journalSealed(f *fixture) {
	token := f.held("a")
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.checkpoint("a", token, store.OK, "one")
	f.nack(store.Nack{ID: "a", Token: token, Outcome: store.OutcomeFailed})
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.again("a", "one")})
}
