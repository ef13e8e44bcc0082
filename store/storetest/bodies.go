package storetest

import (
	"slices"

	"github.com/ddq-io/ddq/store"
)

// large is the payload of tasks of which only a few fit into an answer.
const large = 1 << 20

// addLarge adds tasks with large payloads that are due now, one call each.
func (f *fixture) addLarge(ids ...string) {
	f.Helper()
	for i, id := range ids {
		t := task(id, f.now()-1000)
		t.Payload = make([]byte, large)
		t.Payload[0] = byte(i)
		f.add(t)
	}
}

// holdBodies holds what does not fit into one answer, call by call.
func holdBodies(f *fixture) {
	ids := numbered(20)
	f.ready(ids[:10]...)
	f.addLarge(ids[10:]...)
	left := holdsOf(long, ids...)
	for calls := 0; len(left) > 0; calls++ {
		_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, left)
		f.ok("hold", err)
		if len(results) != len(left) {
			f.Fatalf("got %d results of %d holds", len(results), len(left))
		}
		bytes, held := 0, 0
		for held < len(results) && results[held].Status == store.OK {
			bytes += results[held].Task.BodySize()
			held++
		}
		if held == 0 || bytes >= store.MaxBodies+large {
			f.Fatalf("call %d held %d tasks, %d bytes", calls, held, bytes)
		}
		for _, r := range results[held:] {
			equal(f, "status of those behind", r, store.HoldResult{Status: store.LeftOut})
		}
		for _, h := range left[held:] {
			equal(f, "state of a task that was left out", f.get(h.ID).State, store.StateReady)
		}
		left = left[held:]
		if calls > 4 {
			f.Fatalf("%d of %d tasks are not held after %d calls", len(left), len(ids), calls)
		}
	}
	f.states(store.StateRunning, ids...)
}

// getBodies reads tasks that do not fit into one answer, call by call.
func getBodies(f *fixture) {
	ids := numbered(12)
	f.addLarge(ids...)
	var got []store.Snapshot
	for len(got) < len(ids) {
		_, some, err := f.s.Get(f.ctx, f.shard, ids[len(got):])
		f.ok("get", err)
		f.fits("get", some)
		got = append(got, some...)
	}
	for i, t := range got {
		if t.ID != ids[i] || len(t.Payload) != large || t.Payload[0] != byte(i) {
			f.Fatalf("task %d is %q with %d bytes", i, t.ID, len(t.Payload))
		}
	}
	_, all, err := store.GetAll(f.ctx, f.s, f.shard, append(ids, "absent"))
	f.ok("get all", err)
	equal(f, "number of tasks", len(all), len(ids)+1)
	equal(f, "state of the last", all[len(ids)].State, store.StateUnknown)
	equal(f, "fingerprint of the one before", all[len(ids)-1].Fingerprint, 7)
}

// listBodies pages through tasks of each kind that do not fit into one answer.
func listBodies(f *fixture) {
	ids := numbered(12)
	f.addLarge(ids...)
	var tokens []store.Token
	for _, id := range ids {
		tokens = append(tokens, f.hold(id)...)
	}
	for _, kind := range []store.Kind{store.KindRunning, store.KindDone, store.KindPending} {
		switch kind {
		case store.KindDone:
			for i, id := range ids {
				f.ack(long, store.OK, store.Ack{ID: id, Token: tokens[i]})
			}
		case store.KindPending:
			f.addLarge(ids...) // in the place of the done ones
		}
		var got []string
		for cursor := ""; ; {
			tasks, next, err := f.s.List(f.ctx, f.shard, kind, cursor, 1000)
			f.ok("list", err)
			f.fits("list", tasks)
			for _, t := range tasks {
				equal(f, "bytes of a payload", len(t.Payload), large)
				got = append(got, t.ID)
			}
			if cursor = next; next == "" {
				break
			}
		}
		slices.Sort(got)
		same(f, "listed tasks", got, ids)
	}
}

// reindexBodies indexes large tasks, which takes a call for those that fit into an answer.
func reindexBodies(f *fixture) {
	ids := numbered(12)
	for _, id := range ids {
		t := task(id, f.now()+1000)
		t.Payload, t.Attributes = make([]byte, large), []store.Attribute{{Key: "tenant", Value: "acme"}}
		f.add(t)
	}
	set := store.NewIndexSet("tenant")
	calls := 0
	for cursor := ""; ; calls++ {
		next, err := f.s.Reindex(f.ctx, f.shard, set, cursor, 1000)
		f.ok("reindex", err)
		if cursor = next; next == "" {
			break
		}
	}
	if calls < 2 {
		f.Fatalf("%d bytes were read in %d calls", len(ids)*large, calls+1)
	}
	entries, err := f.s.Lookup(f.ctx, f.shard, store.IndexQuery{Name: "tenant", Value: "acme", Limit: 1000})
	f.ok("lookup", err)
	equal(f, "entries", len(entries), len(ids))
}

// fits checks the bodies of an answer that is not the last.
func (f *fixture) fits(what string, tasks []store.Snapshot) {
	f.Helper()
	bytes := 0
	for _, t := range tasks {
		bytes += t.BodySize()
	}
	if len(tasks) == 0 || bytes >= store.MaxBodies+large {
		f.Fatalf("%s: %d tasks, %d bytes", what, len(tasks), bytes)
	}
}
