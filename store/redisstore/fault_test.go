package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// operation is one call of the store that changes something.
type operation struct {
	name string
	do   func(s shardOf) error
}

// world is a shard with a task in every state, and the cell that they tell.
type world struct {
	shardOf
	tokens map[string]store.Token // of running and done tasks
	later  store.Millis           // when the scheduled one is due
}

func newWorld(t *testing.T, server *redistest.Server) world {
	t.Helper()
	w := world{
		shardOf: claim(t, open(t, server.URL())), tokens: make(map[string]store.Token),
		later: store.Millis(time.Now().Add(time.Hour).UnixMilli()),
	}
	ctx := context.Background()
	var tasks []*store.Task
	for _, id := range []string{"scheduled", "ready", "running", "done", "dead", "retrying"} {
		task := inWorld(id)
		if id == "scheduled" {
			task.Due = w.later
		}
		tasks = append(tasks, task)
	}
	_, _, err := w.Add(ctx, w.shard, tasks)
	w.must(t, err)
	_, _, err = w.Commit(ctx, w.shard, nil, []store.Commit{{Puts: []store.Put{{Cell: listedCell("sworld", "one")}}}})
	w.must(t, err)
	for _, task := range tasks[2:] {
		token := store.NewToken()
		_, results, err := w.Hold(ctx, w.shard, w.fence, []store.Hold{{ID: task.ID, Token: token, Visibility: time.Hour, Worker: "w"}})
		w.must(t, err)
		if results[0].Status != store.OK {
			t.Fatalf("hold %s: %+v", task.ID, results[0])
		}
		w.tokens[task.ID] = token
	}
	_, _, err = w.Ack(ctx, w.shard, []store.Ack{{ID: "done", Token: w.tokens["done"]}}, time.Hour)
	w.must(t, err)
	_, _, err = w.Nack(ctx, w.shard, []store.Nack{
		{ID: "dead", Token: w.tokens["dead"], Reason: store.ReasonPermanent, Error: "bad"},
		{ID: "retrying", Token: w.tokens["retrying"], Delay: time.Hour, Error: "bad"},
	})
	w.must(t, err)
	return w
}

// listedCell is a cell that wakes and is in a list.
func listedCell(id store.CellID, body string) store.Cell {
	return store.Cell{ID: id, Wake: 17, List: "all", Listed: 5, Body: []byte(body)}
}

// inWorld is a due task that is indexed by its id and tells a cell.
func inWorld(id string) *store.Task {
	return &store.Task{
		ID: id, Payload: []byte(id), Due: 1, Created: 1, MaxRetries: -1,
		Attributes: []store.Attribute{{Key: "name", Value: id}}, Indexed: store.NewIndexSet("name"), Tells: "sworld",
	}
}

// verifyIndex fails the test unless just these tasks are in the index.
func (w world) verifyIndex(t *testing.T, ids ...string) {
	t.Helper()
	entries, err := w.Lookup(t.Context(), w.shard, store.IndexQuery{Name: "name", Prefix: true, Limit: 100})
	w.must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.ID)
	}
	if slices.Sort(ids); !slices.Equal(got, ids) {
		t.Errorf("the index has %q, want %q", got, ids)
	}
}

func (w world) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// operations are all calls that change something, each about tasks of the world.
func (w world) operations() []operation {
	ctx := context.Background()
	token := store.NewToken()
	hold := []store.Hold{{ID: "ready", Token: token, Visibility: time.Hour, Worker: "w"}}
	fresh, other, again := inWorld("fresh"), inWorld("other"), inWorld("dead")
	again.Payload = []byte("x")
	running := w.tokens["running"]
	brings := store.Commit{
		Puts: []store.Put{{Cell: listedCell("snew", "one")}, {Cell: listedCell("Snew", "part")}}, Adds: []*store.Task{inWorld("made")},
		Send: []store.Parcel{{To: "sworld", Body: []byte("in")}, {To: "sother", Topic: "other", Body: []byte("out")}},
	}
	carriesOn := store.Commit{
		Puts: []store.Put{{Cell: store.Cell{ID: "sworld", Body: []byte("two")}, If: 1}}, Under: []store.Holder{{ID: "running", Token: running}},
		Removes: []store.Remove{{ID: "scheduled", Due: w.later}}, Take: 1, Drop: []int64{1},
	}
	return []operation{
		{"add", func(s shardOf) error { _, _, err := s.Add(ctx, s.shard, []*store.Task{fresh}); return err }},
		{"replace", func(s shardOf) error { _, _, err := s.Add(ctx, s.shard, []*store.Task{again}); return err }},
		{"hold new", func(s shardOf) error {
			_, _, err := s.HoldNew(ctx, s.shard, s.fence, []*store.Task{other}, []store.Hold{{Token: token, Visibility: time.Hour}})
			return err
		}},
		{"hold", func(s shardOf) error { _, _, err := s.Hold(ctx, s.shard, s.fence, hold); return err }},
		{"commit that brings work", func(s shardOf) error { _, _, err := s.Commit(ctx, s.shard, nil, []store.Commit{brings}); return err }},
		{"commit that carries on", func(s shardOf) error {
			_, _, err := s.Commit(ctx, s.shard, &s.fence, []store.Commit{carriesOn})
			return err
		}},
		{"extend", func(s shardOf) error {
			_, _, err := s.Extend(ctx, s.shard, []store.Extend{{ID: "done", Token: running, Visibility: 2 * time.Hour}})
			return err
		}},
		{"recover", func(s shardOf) error {
			_, _, err := s.Recover(ctx, s.shard, s.fence, []store.Nack{{ID: "running", Token: running}})
			return err
		}},
		{"nack", func(s shardOf) error {
			_, _, err := s.Nack(ctx, s.shard, []store.Nack{{ID: "running", Token: running, Delay: time.Hour, Error: "e"}})
			return err
		}},
		{"dead-letter", func(s shardOf) error {
			_, _, err := s.Nack(ctx, s.shard, []store.Nack{{ID: "other", Token: token, Reason: store.ReasonPermanent}})
			return err
		}},
		{"ack and keep", func(s shardOf) error {
			_, _, err := s.Ack(ctx, s.shard, []store.Ack{{ID: "ready", Token: token}}, time.Hour)
			return err
		}},
		{"ack", func(s shardOf) error {
			_, _, err := s.Ack(ctx, s.shard, []store.Ack{{ID: "running", Token: running}, {ID: "other", Token: token}}, 0)
			return err
		}},
		{"remove", func(s shardOf) error { _, _, err := s.Remove(ctx, s.shard, store.Removals("scheduled")); return err }},
		{"remove dead", func(s shardOf) error { _, _, err := s.RemoveDead(ctx, s.shard, []string{"dead"}); return err }},
		{"trim", func(s shardOf) error { _, err := s.Trim(ctx, s.shard, 10); return err }},
	}
}

// moving are the calls that change something each time they are made, or answer
// differently the second time.
func (w world) moving() []operation {
	ctx := context.Background()
	return []operation{
		{"reschedule", func(s shardOf) error {
			_, _, err := s.Edit(ctx, s.shard, []store.Edit{{ID: "retrying", Due: 5}})
			return err
		}},
		{"requeue", func(s shardOf) error { _, _, err := s.Requeue(ctx, s.shard, []string{"dead"}); return err }},
		{"extend", func(s shardOf) error {
			_, _, err := s.Extend(ctx, s.shard, []store.Extend{{ID: "running", Token: w.tokens["running"], Visibility: 2 * time.Hour}})
			return err
		}},
		{"claim", func(s shardOf) error {
			_, _, err := s.Claim(ctx, s.shard, w.session)
			return err
		}},
		{"release", func(s shardOf) error { return s.Release(ctx, s.shard, s.fence) }},
		{"sweep", func(s shardOf) error {
			cursor := ""
			for {
				_, next, err := s.Sweep(ctx, s.shard, s.fence, cursor, 10)
				if cursor = next; err != nil || cursor == "" {
					return err
				}
			}
		}},
	}
}

// digest is a hash of everything in the server.
func digest(t *testing.T, server *redistest.Server) string {
	t.Helper()
	return server.Do(t, "DEBUG", "DIGEST").(string)
}

// TestWrongTypesChangeNothing puts a key of the wrong type in the place of each
// key and sees that every call either works or changes nothing.
func TestWrongTypesChangeNothing(t *testing.T) {
	server := redistest.Start(t)
	keys := []string{"owner", "tasks", "data", "running", "notes", "dlq", "done", "kept", "attrs", "index", "tells", "in", "cells", "parts", "wakes", "lists", "out"}
	failed := 0
	for _, key := range keys {
		for _, kind := range []string{"string", "list"} {
			server.Do(t, "FLUSHALL")
			w := newWorld(t, server)
			key := "ddq:{mail:0}:" + key
			for _, op := range append(w.operations(), w.moving()...) {
				spoilt := server.Do(t, "EXISTS", key).(int64) == 1
				server.Do(t, "COPY", key, "{mail:0}kept-apart", "REPLACE")
				server.Do(t, "DEL", key)
				if kind == "string" {
					server.Do(t, "SET", key, "no")
				} else {
					server.Do(t, "RPUSH", key, "no")
				}
				before := digest(t, server)
				err := op.do(w.shardOf)
				if err != nil && digest(t, server) != before {
					t.Errorf("%s with a %s under %s: failed with %v and changed something", op.name, kind, key, err)
				}
				if err != nil {
					failed++
				}
				if err != nil && strings.Contains(err.Error(), "WRONGTYPE") && !strings.Contains(err.Error(), strconv.Quote(key)) {
					t.Errorf("%s with a %s under %s: the error does not name the key: %v", op.name, kind, key, err)
				}
				if isContract(err) && !errors.Is(err, store.ErrFenced) {
					t.Errorf("%s with a %s under %s: %v", op.name, kind, key, err)
				}
				server.Do(t, "DEL", key)
				if spoilt {
					server.Do(t, "RENAME", "{mail:0}kept-apart", key)
				}
			}
			w.Close()
		}
	}
	if failed < 100 {
		t.Errorf("only %d calls failed: were the keys in their way?", failed)
	}
}

func isContract(err error) bool {
	return errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull)
}

// TestCorruptFieldsAreSurvived writes nonsense into every field and sees that no
// call fails in a way that changes something, and that reads go on.
func TestCorruptFieldsAreSurvived(t *testing.T) {
	server := redistest.Start(t)
	for _, nonsense := range []string{"", "x", strings.Repeat("\xff", 15), strings.Repeat("\x00", 29), strings.Repeat("\xff", 60)} {
		for _, key := range []string{"data", "running", "notes", "tells", "cells"} {
			server.Do(t, "FLUSHALL")
			w := newWorld(t, server)
			key := "ddq:{mail:0}:" + key
			fields := server.Do(t, "HKEYS", key)
			for _, field := range fields.([]any) {
				server.Do(t, "HSET", key, field, nonsense)
			}
			what := fmt.Sprintf("with %q in %s", nonsense, key)
			ctx := t.Context()
			if _, _, err := w.Get(ctx, w.shard, []string{"scheduled", "ready", "running", "done", "dead", "retrying"}); err != nil {
				t.Errorf("get %s: %v", what, err)
			}
			for kind := store.KindPending; kind <= store.KindDead; kind++ {
				if _, _, err := w.List(ctx, w.shard, kind, "", 10); err != nil {
					t.Errorf("list %s: %v", what, err)
				}
			}
			if _, _, err := w.Running(ctx, w.shard, "", 10); err != nil {
				t.Errorf("running %s: %v", what, err)
			}
			w.readCells(t, what)
			for _, op := range append(w.operations(), w.moving()...) {
				before := digest(t, server)
				if err := op.do(w.shardOf); err != nil && !errors.Is(err, store.ErrFenced) && digest(t, server) != before {
					t.Errorf("%s %s: failed with %v and changed something", op.name, what, err)
				}
			}
			w.Close()
		}
	}
}

// readCells sees that reads about cells go on.
func (w world) readCells(t *testing.T, what string) {
	t.Helper()
	ctx := t.Context()
	if cells, err := w.Cells(ctx, w.shard, []store.CellID{"sworld", "sother"}); err != nil || len(cells) != 2 {
		t.Errorf("cells %s: %v, %v", what, cells, err)
	}
	if _, err := w.Listed(ctx, w.shard, "all", store.Wake{}, 10); err != nil {
		t.Errorf("listed %s: %v", what, err)
	}
	if _, _, err := w.CellPage(ctx, w.shard, store.CellSchedule, "", 10); err != nil {
		t.Errorf("cell page %s: %v", what, err)
	}
	if _, err := w.Parcels(ctx, w.shard, store.InBox, 0, 10); err != nil {
		t.Errorf("parcels %s: %v", what, err)
	}
}

func TestCorruptOwnerRecordChangesNothing(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld(t, server)
	server.Do(t, "HSET", "ddq:{mail:0}:owner", "seq", "many")
	before := digest(t, server)
	for _, op := range append(w.operations(), w.moving()...) {
		if op.name == "release" {
			continue // does not look at seq
		}
		if err := op.do(w.shardOf); err == nil {
			t.Errorf("%s worked without a seq", op.name)
		}
		if digest(t, server) != before {
			t.Fatalf("%s changed something", op.name)
		}
	}
}

// TestRepeatedCallsEqualOne makes every call three times, as callers do that
// missed the answer, and forgets all scripts in between.
func TestRepeatedCallsEqualOne(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld(t, server)
	for _, op := range w.operations() {
		w.must(t, op.do(w.shardOf))
		once := digest(t, server)
		for range 2 {
			server.Do(t, "SCRIPT", "FLUSH")
			if err := op.do(w.shardOf); err != nil {
				t.Errorf("%s again: %v", op.name, err)
			}
		}
		if digest(t, server) != once {
			t.Errorf("%s three times is not the same as once", op.name)
		}
	}
}

func TestStatsSurviveForgottenScripts(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld(t, server)
	server.Do(t, "SCRIPT", "FLUSH")
	stats, err := w.Stats(t.Context(), []store.Shard{w.shard, {Topic: "other", N: 1}, w.shard})
	w.must(t, err)
	for i, want := range []int64{3, 0, 3} {
		if stats[i].Pending != want {
			t.Errorf("shard %d has %d pending tasks, want %d", i, stats[i].Pending, want)
		}
	}
}

func TestUnreadableTaskIsDeadLettered(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld(t, server)
	ctx := t.Context()
	const data = "ddq:{mail:0}:data"
	for id, bytes := range map[string]string{
		"empty": "", "version": "\xf0\x00\x00\x00\x00\x00\x00\x00\x00", "flags": "\x1f\x00\x00\x00\x00\x00\x00\x00\x00",
		"short": "\x10", "no expiry": "\x11\x00\x00\x00\x00\x00\x00\x00\x00\x01",
		"body": "\x10\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff",
	} {
		_, _, err := w.Add(ctx, w.shard, []*store.Task{{ID: id, Payload: []byte("x"), Due: 1, Created: 1, MaxRetries: -1}})
		w.must(t, err)
		server.Do(t, "HSET", data, redisstore.Stored(id), bytes)
		_, results, err := w.Hold(ctx, w.shard, w.fence, []store.Hold{{ID: id, Token: store.NewToken(), Visibility: time.Hour}})
		w.must(t, err)
		if results[0].Status != store.Corrupt {
			t.Errorf("%s: status is %d, want %d", id, results[0].Status, store.Corrupt)
		}
		_, got, err := w.Get(ctx, w.shard, []string{id})
		w.must(t, err)
		if got[0].State != store.StateDead || got[0].Reason != store.ReasonCorrupt || got[0].Attempt != 0 {
			t.Errorf("%s: state %v, reason %d, attempt %d", id, got[0].State, got[0].Reason, got[0].Attempt)
		}
		if after := server.Do(t, "HGET", data, redisstore.Stored(id)); after != bytes {
			t.Errorf("%s: bytes changed from %x to %x", id, bytes, after)
		}
		_, statuses, err := w.Requeue(ctx, w.shard, []string{id})
		w.must(t, err)
		if statuses[0].Status != store.WrongState {
			t.Errorf("requeue %s: status is %d, want %d", id, statuses[0].Status, store.WrongState)
		}
	}
}

// A record that is gone is no task without anything in it, and shows as a dead letter once
// somebody wants the task.
func TestTaskWhoseRecordIsGoneIsDeadLettered(t *testing.T) {
	server := redistest.Start(t)
	w := newWorld(t, server)
	ctx := t.Context()
	_, _, err := w.Add(ctx, w.shard, []*store.Task{{ID: "gone", Payload: []byte("x"), Due: 1, Created: 1, MaxRetries: -1}})
	w.must(t, err)
	server.Do(t, "HDEL", "ddq:{mail:0}:data", redisstore.Stored("gone"))
	get := func() store.Snapshot {
		_, got, err := w.Get(ctx, w.shard, []string{"gone"})
		w.must(t, err)
		return got[0]
	}
	if got := get(); got.State != store.StateUnknown {
		t.Errorf("state is %v, want %v", got.State, store.StateUnknown)
	}
	_, results, err := w.Hold(ctx, w.shard, w.fence, []store.Hold{{ID: "gone", Token: store.NewToken(), Visibility: time.Hour}})
	w.must(t, err)
	if results[0].Status != store.Corrupt {
		t.Errorf("status is %d, want %d", results[0].Status, store.Corrupt)
	}
	if got := get(); got.State != store.StateDead || got.Reason != store.ReasonCorrupt {
		t.Errorf("state is %v, reason %d", got.State, got.Reason)
	}
}

// TestFullServerStillSettles fills a server up: adding is refused and everything
// that makes room goes on.
func TestFullServerStillSettles(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	ctx := t.Context()
	tasks := newTasks(4000, 1)
	_, _, err := s.Add(ctx, s.shard, tasks)
	if err != nil {
		t.Fatal(err)
	}
	server.Do(t, "CONFIG", "SET", "maxmemory", "1mb")
	before := digest(t, server)
	if _, _, err := s.Add(ctx, s.shard, newTasks(1, 1)); !errors.Is(err, store.ErrFull) {
		t.Errorf("add to a full server: %v, want %v", err, store.ErrFull)
	}
	holds, acks := holdsFor(tasks)
	if _, _, err := s.HoldNew(ctx, s.shard, s.fence, newTasks(1, 1), holds[:1]); !errors.Is(err, store.ErrFull) {
		t.Errorf("hold new in a full server: %v, want %v", err, store.ErrFull)
	}
	if digest(t, server) != before {
		t.Error("a refused call changed something")
	}
	_, held, err := s.Hold(ctx, s.shard, s.fence, holds)
	if err != nil {
		t.Fatalf("hold: %v", err)
	}
	_, acked, err := s.Ack(ctx, s.shard, acks, 0)
	if err != nil {
		t.Fatalf("ack: %v", err)
	}
	for i := range tasks {
		if held[i].Status != store.OK || acked[i] != store.OK {
			t.Fatalf("task %d: hold %d, ack %d", i, held[i].Status, acked[i])
		}
	}
	server.Do(t, "CONFIG", "SET", "maxmemory", "100mb")
	if _, _, err := s.Add(ctx, s.shard, newTasks(1, 1)); err != nil {
		t.Errorf("add to a server with room: %v", err)
	}
}

func TestKilledServerLosesNothing(t *testing.T) {
	// Where the disk is slow to sync, Redis puts off even the write when it syncs each
	// second only: for up to two seconds a kill loses what was answered.
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := claim(t, open(t, server.URL()))
	ctx := t.Context()
	tasks := newTasks(500, 1)
	if _, _, err := s.Add(ctx, s.shard, tasks); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	_, _, err := s.Add(ctx, s.shard, newTasks(1, 1))
	if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknown) {
		t.Errorf("add without a server: %v", err)
	}
	if _, err := s.Clock(ctx); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("clock without a server: %v", err)
	}
	server.Restart()
	holds, acks := holdsFor(tasks)
	var held []store.HoldResult
	eventually(t, "hold", func() (err error) { // connections from before may fail once more
		_, held, err = s.Hold(ctx, s.shard, s.fence, holds)
		return err
	})
	for i := range held {
		if held[i].Status != store.OK || !bytes.Equal(held[i].Task.Payload, tasks[i].Payload) {
			t.Fatalf("task %d after the restart: %+v", i, held[i])
		}
	}
	if _, _, err := s.Ack(ctx, s.shard, acks, 0); err != nil {
		t.Errorf("ack: %v", err)
	}
}

func TestContextEndsACall(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := digest(t, server)
	if _, _, err := s.Add(ended, s.shard, newTasks(1, 1)); !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnknown) {
		t.Errorf("add with an ended context: %v", err)
	}
	if digest(t, server) != before {
		t.Error("a call with an ended context changed something")
	}
	server.Pause()
	defer server.Resume()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := s.Add(short, s.shard, newTasks(1, 1)); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("add to a server that stands still: %v, want %v", err, store.ErrUnknown)
	}
}
