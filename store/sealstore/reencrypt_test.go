package sealstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/sealstore"
)

// collector is a store.Rewrite that changes nothing, and keeps what it is handed.
type collector struct{ all [][]byte }

func (c *collector) Task(t *store.Task) bool {
	c.all = append(c.all, t.Payload)
	if t.RunOf != nil {
		c.all = append(c.all, t.RunOf.RecipientData)
	}
	if of := t.StepOf; of != nil {
		c.all = append(c.all, of.Input)
		for i := range of.Inputs {
			c.all = append(c.all, of.Inputs[i].Result, []byte(of.Inputs[i].Error))
		}
		for i := range of.Journal {
			c.all = append(c.all, of.Journal[i].Value)
		}
	}
	return false
}

func (c *collector) Value(b []byte) ([]byte, bool) {
	c.all = append(c.all, bytes.Clone(b))
	return nil, false
}

func (c *collector) Entry(e *store.JournalEntry) bool {
	c.all = append(c.all, e.Value)
	return false
}

// written returns all values that users wrote, as they are stored.
func written(t *testing.T, s store.Rewriter, shard store.Shard) [][]byte {
	t.Helper()
	var c collector
	for cursor := ""; ; {
		var err error
		if cursor, err = s.Rewrite(t.Context(), shard, &c, cursor, 3); err != nil {
			t.Fatal(err)
		}
		if cursor == "" {
			return c.all
		}
	}
}

// under counts values sealed with a key, and those that are not sealed.
func under(all [][]byte, id sealstore.KeyID) (sealed, plain int) {
	for _, b := range all {
		switch {
		case bytes.HasPrefix(b, id[:]), len(b) > 0 && b[0] == 0xF6 && bytes.HasPrefix(b[1:], id[:]):
			sealed++
		case bytes.Contains(b, []byte("plain")):
			plain++
		}
	}
	return sealed, plain
}

// stocked is a store with all that users write, in a shard that a process owns.
type stocked struct {
	*bench
	tokens map[string]store.Token
}

// stock writes with b.s what is to be read later, each of name, which says what it is of.
func (b *stocked) stock(s *sealstore.Store, name string) {
	b.Helper()
	id := func(what string) string { return name + "-" + what }
	full := dueTask(id("step"), name)
	full.RunOf = &store.RunOf{Schedule: "daily", Recipient: "ann", RecipientData: []byte(name)}
	full.StepOf = &store.StepOf{
		Workflow: "w", Topic: "mail", Kind: "w", Name: "a", Input: []byte(name),
		Inputs:  []store.StepInput{{Step: "b", End: 1, Result: []byte(name), Error: name}},
		Journal: []store.JournalEntry{{Name: "n", Value: []byte(name)}},
	}
	b.add(s, full)
	for _, what := range []string{"running", "done", "dead", "failed"} {
		b.add(s, dueTask(id(what), name))
		token := store.NewToken()
		_, results, err := s.Hold(b.Context(), mail, b.fence, []store.Hold{{ID: id(what), Token: token, Visibility: time.Hour, Worker: "w"}})
		b.ok(err)
		if results[0].Status != store.OK {
			b.Fatalf("hold of %s: %v", id(what), results[0].Status)
		}
		b.tokens[id(what)] = token
	}
	_, _, err := s.Checkpoint(b.Context(), mail, []store.Checkpoint{{ID: id("running"), Token: b.tokens[id("running")], JournalEntry: store.JournalEntry{Name: "part", Value: []byte(name)}}})
	b.ok(err)
	_, _, err = s.Ack(b.Context(), mail, []store.Ack{{ID: id("done"), Token: b.tokens[id("done")], Result: []byte(name)}}, time.Hour)
	b.ok(err)
	_, _, err = s.Nack(b.Context(), mail, []store.Nack{
		{ID: id("dead"), Token: b.tokens[id("dead")], Reason: store.ReasonMaxRetries, Error: name, Outcome: store.OutcomeFailed},
		{ID: id("failed"), Token: b.tokens[id("failed")], Error: name, Outcome: store.OutcomeFailed},
	})
	b.ok(err)
	cell := store.Cell{ID: store.CellID("s" + name), Wake: 1, List: "l", Listed: 2, Body: []byte(name)}
	part := store.Cell{ID: store.CellID("S" + name), Body: []byte(name)}
	_, commits, err := s.Commit(b.Context(), mail, nil, []store.Commit{{Puts: []store.Put{{Cell: cell}, {Cell: part}}}})
	b.ok(err)
	if commits[0].Status != store.OK {
		b.Fatalf("commit: %v", commits[0].Status)
	}
}

// check reads what stock wrote.
func (b *stocked) check(s *sealstore.Store, name string) {
	b.Helper()
	want := func(what string, got []byte) {
		b.Helper()
		if string(got) != name {
			b.Errorf("%s of %s: %q", what, name, got)
		}
	}
	id := func(what string) string { return name + "-" + what }
	step := b.get(s, id("step"))
	want("payload", step.Payload)
	want("data of the recipient", step.RunOf.RecipientData)
	want("input", step.StepOf.Input)
	want("result of the step before", step.StepOf.Inputs[0].Result)
	want("its error", []byte(step.StepOf.Inputs[0].Error))
	want("journal of the step", step.StepOf.Journal[0].Value)
	states := map[string]store.State{"running": store.StateRunning, "done": store.StateDone, "dead": store.StateDead, "failed": store.StateReady}
	for what, state := range states {
		got := b.get(s, id(what))
		want(what, got.Payload)
		if got.State != state || got.Version() != 1 {
			b.Errorf("%s is %v, version %d", id(what), got.State, got.Version())
		}
		if what == "dead" || what == "failed" {
			want("last error", []byte(got.LastError))
		}
	}
	journal, err := s.Journal(b.Context(), mail, id("running"))
	b.ok(err)
	want("journal", journal[0].Value)
	past, err := s.History(b.Context(), mail, []string{id("done"), id("failed")})
	b.ok(err)
	want("result", past[0].Result)
	want("error of an attempt", []byte(past[1].Attempts[0].Error))
	cells, err := s.Cells(b.Context(), mail, []store.CellID{store.CellID("s" + name), store.CellID("S" + name)})
	b.ok(err)
	for _, c := range cells {
		want("cell", c.Body)
		if c.Version != 1 {
			b.Errorf("cell %q has version %d", c.ID, c.Version)
		}
	}
}

// settle ends the task that runs, and tasks by the deletes that a store does at the end of their lives.
func (b *stocked) settle(s *sealstore.Store, name string) {
	b.Helper()
	id := name + "-running"
	_, statuses, err := s.Ack(b.Context(), mail, []store.Ack{{ID: id, Token: b.tokens[id]}}, 0)
	b.ok(err)
	if statuses[0] != store.OK {
		b.Errorf("ack of a task that runs: %v", statuses[0])
	}
	_, removed, err := s.Remove(b.Context(), mail, store.Removals(name+"-step"))
	b.ok(err)
	if removed[0].Status != store.OK {
		b.Errorf("delete of a task that waits: %v", removed[0].Status)
	}
	for _, gone := range []string{id, name + "-step"} {
		if got := b.get(s, gone); got.State != store.StateUnknown {
			b.Errorf("%s is %v", gone, got.State)
		}
	}
}

func newStocked(t *testing.T, inner sealstore.Inner, keys *sealstore.Keys) *stocked {
	t.Helper()
	return &stocked{benchOver(t, inner, keys), make(map[string]store.Token)}
}

// aloneKeys are those of a process that has a store for itself, and these master keys.
func aloneKeys(t *testing.T, inner store.Registry, by ...string) *sealstore.Keys {
	t.Helper()
	keys, err := sealstore.OpenKeys(t.Context(), inner, masters(t, strings.Join(by, "\n")), sealstore.Config{Node: "a", Alone: true}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func ids(t *testing.T, registry store.Registry, needed bool) (all []sealstore.KeyID) {
	t.Helper()
	infos, err := sealstore.List(t.Context(), registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range infos {
		if k.Needed == needed {
			all = append(all, k.ID)
		}
	}
	return all
}

// After it nothing is left under the keys of before, and what users wrote is read as it was.
func TestReencrypt(t *testing.T) {
	for _, kind := range stores {
		if kind.name == "redis" && !strings.Contains(*sealedStores, kind.name) {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel() // they wait
			testReencrypt(t, kind.open(t)(t))
		})
	}
}

func testReencrypt(t *testing.T, inner sealstore.Inner) {
	plain, err := sealstore.OpenKeys(t.Context(), inner, masters(t, one), sealstore.Config{ReadOnly: true}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	b := newStocked(t, inner, plain)
	b.stock(b.s, "plain")
	before := aloneKeys(t, inner, one)
	b.stock(sealstore.New(inner, before), "sealed")
	former := ids(t, inner, true)

	s := sealstore.New(inner, aloneKeys(t, inner, two, one))
	r := sealstore.Reencryption{
		Shards: func(context.Context) ([]store.Shard, error) { return []store.Shard{{Topic: "never"}, mail}, nil },
		Batch:  4,
	}
	stop := errors.New("enough")
	var last sealstore.Reencrypted
	r.Report = func(p sealstore.Reencrypted) error {
		if last = p; p.Sealed > 5 {
			return stop
		}
		return nil
	}
	if err := s.Reencrypt(t.Context(), r); !errors.Is(err, stop) {
		t.Fatalf("it ended with %v", err)
	}
	if gone := ids(t, inner, false); len(gone) != 0 {
		t.Errorf("in its midst %v are not needed", gone)
	}
	first := last.Sealed
	r.Mark, r.Report = last.Mark, func(p sealstore.Reencrypted) error { last = p; return nil }
	if err := s.Reencrypt(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if last.Unread != 0 || last.Sealed == 0 {
		t.Errorf("it did %+v, and %d before", last, first)
	}

	all := written(t, inner, mail)
	if len(all) < 30 {
		t.Errorf("only %d values are stored", len(all))
	}
	for _, id := range former {
		if sealed, left := under(all, id); sealed+left != 0 {
			t.Errorf("%d values are under key %v, and %d under none", sealed, id, left)
		}
	}
	gone := ids(t, inner, false)
	for _, id := range former {
		if !slices.Contains(gone, id) {
			t.Errorf("key %v is needed still", id)
		}
	}
	if _, err := sealstore.Rotate(t.Context(), inner, masters(t, two)); err != nil {
		t.Errorf("without the master key of keys that nobody needs: %v", err)
	}
	other, err := sealstore.OpenKeys(t.Context(), inner, masters(t, two), sealstore.Config{ReadOnly: true}, quiet())
	b.ok(err)
	for _, name := range []string{"plain", "sealed"} {
		b.check(sealstore.New(inner, other), name)
		b.settle(s, name)
	}
	r.Mark = ""
	if err := s.Reencrypt(t.Context(), r); err != nil { // everything is under the key that is retired now
		t.Fatal(err)
	}
	if last.Looked == 0 || last.Sealed != last.Looked {
		t.Errorf("another time: %+v", last)
	}
}

// A process that seals goes over to another key when its own is retired, before anything is walked through.
func TestKeyThatIsRetiredIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := openMemory(t)
		one, two := keysOf(t, inner), keysOf(t, inner)
		former := ids(t, inner, true)
		other := sealstore.New(inner, two)
		add := func(id string) []byte {
			_, _, err := other.Add(t.Context(), mail, []*store.Task{dueTask(id, "hello")})
			if err != nil {
				t.Fatal(err)
			}
			_, all, err := inner.Get(t.Context(), mail, []string{id})
			if err != nil {
				t.Fatal(err)
			}
			return all[0].Payload
		}
		add("a")
		if err := one.Retire(t.Context()); err != nil {
			t.Fatal(err)
		}
		add("b") // it may not know yet
		retired, err := one.Settle(t.Context())
		if err != nil || len(retired) != 2 {
			t.Fatalf("retired are %v, %v", retired, err)
		}
		for _, id := range former {
			if sealed, _ := under([][]byte{add("c-" + id.String())}, id); sealed > 0 {
				t.Errorf("it goes on with key %v", id)
			}
		}
		if fmt.Sprint(ids(t, inner, false)) != "[]" {
			t.Error("a key is not needed before anybody has looked")
		}
	})
}
