package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

func attributeCases() []entry {
	return []entry{
		{"Lookup/FindsTasksInEveryState", lookupStates},
		{"Lookup/ForgetsTasksThatGo", lookupGone},
		{"Lookup/FollowsWhatTakesATasksPlace", lookupReplaced},
		{"Lookup/FollowsEdits", lookupEdited},
		{"Lookup/ByValueAndPrefix", lookupValues},
		{"Lookup/PagesThroughEverything", lookupPages},
		{"Lookup/RefusedWhereTasksAreNotIndexed", lookupRefused},
		{"Reindex/FindsWhatWasThereBefore", reindexBefore},
		{"Reindex/KeepsWhatIsHeld", reindexHeld},
		{"Reindex/EndsWhenATaskComesWithoutWord", reindexEnded},
		{"Reindex/TakesAttributesOut", reindexOut},
		{"Reindex/SealedShard", reindexSealed},
		{"Reindex/BadCursor", reindexCursor},
	}
}

// indexed returns a task with attributes, of which those called tenant and path are indexed.
func indexed(id string, due store.Millis, attributes ...string) *store.Task {
	t := attributed(id, due, attributes...)
	t.Indexed = tenantAndPath
	return t
}

// attributed is indexed without word of the index.
func attributed(id string, due store.Millis, attributes ...string) *store.Task {
	t := task(id, due)
	for _, a := range attributes {
		key, value, _ := strings.Cut(a, "=")
		t.Attributes = append(t.Attributes, store.Attribute{Key: key, Value: value})
	}
	return t
}

var tenantAndPath = store.NewIndexSet("tenant", "path")

// lookup returns the ids of the tasks that have an attribute.
func (f *fixture) lookup(name, value string) []string {
	f.Helper()
	return f.lookupAll(store.IndexQuery{Name: name, Value: value, Limit: 1000})
}

func (f *fixture) lookupAll(q store.IndexQuery) (ids []string) {
	f.Helper()
	for {
		page, err := f.s.Lookup(f.ctx, f.shard, q)
		f.ok("lookup", err)
		for _, e := range page {
			ids = append(ids, e.ID)
		}
		if len(page) < q.Limit {
			return ids
		}
		q.After = &page[len(page)-1]
	}
}

// reindex makes the shard complete for a set, few tasks at a time.
func (f *fixture) reindex(set store.IndexSet) {
	f.Helper()
	for cursor := ""; ; {
		next, err := f.s.Reindex(f.ctx, f.shard, set, cursor, 2)
		f.ok("reindex", err)
		if cursor = next; cursor == "" {
			equal(f, "state of the index", f.stats().Index, store.IndexState{Ready: set})
			return
		}
	}
}

func lookupStates(f *fixture) {
	due := f.now() - 1000
	for _, id := range []string{"done", "dead", "expired", "running", "nacked", "pending", "other"} {
		t := indexed(id, due, "tenant=acme", "color=red", "path=/"+id)
		if id == "other" {
			t.Attributes[0].Value = "other"
		}
		if id == "expired" {
			t.Expires = due + 1
		}
		f.add(t)
	}
	all := []string{"dead", "done", "expired", "nacked", "pending", "running"}
	same(f, "all pending", f.lookup("tenant", "acme"), all)
	tokens := f.hold("done", "dead", "running", "nacked")
	f.ack(long, store.OK, store.Ack{ID: "done", Token: tokens[0]})
	f.nack(store.Nack{ID: "dead", Token: tokens[1], Reason: store.ReasonPermanent})
	f.nack(store.Nack{ID: "nacked", Token: tokens[3], Delay: long})
	_, results, err := f.s.Hold(f.ctx, f.shard, f.fence, holdsOf(long, "expired"))
	f.ok("hold", err)
	f.statuses("hold", results, store.Expired)
	same(f, "in every state", f.lookup("tenant", "acme"), all)
	same(f, "the other", f.lookup("tenant", "other"), []string{"other"})
	same(f, "by another attribute", f.lookup("path", "/dead"), []string{"dead"})

	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"dead"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK)
	same(f, "after a requeue", f.lookup("tenant", "acme"), all)
	equal(f, "what Get returns of the set", f.get("dead").Indexed, "")
	equal(f, "state of the index", f.stats().Index, store.IndexState{Ready: tenantAndPath})
}

func lookupGone(f *fixture) {
	due := f.now() - 1000
	for _, id := range []string{"acked", "removed", "trimmed", "dead", "oldest dead", "left"} {
		f.add(indexed(id, due, "tenant=acme", "path="+id))
	}
	tokens := f.hold("acked", "trimmed", "dead", "oldest dead")
	f.ack(0, store.OK, store.Ack{ID: "acked", Token: tokens[0]})
	same(f, "without the acked", f.lookup("tenant", "acme"), []string{"dead", "left", "oldest dead", "removed", "trimmed"})
	f.ack(time.Millisecond, store.OK, store.Ack{ID: "trimmed", Token: tokens[1]})
	for _, i := range []int{3, 2} {
		f.nack(store.Nack{ID: []string{"dead", "oldest dead"}[i-2], Token: tokens[i], Reason: store.ReasonPermanent})
		waitUntil(f, f.s, f.now()+2)
	}
	_, _, err := f.s.Remove(f.ctx, f.shard, store.Removals("removed"))
	f.ok("remove", err)
	same(f, "without the removed", f.lookup("tenant", "acme"), []string{"dead", "left", "oldest dead", "trimmed"})
	_, err = f.s.Trim(f.ctx, f.shard, 10)
	f.ok("trim", err)
	same(f, "without the trimmed", f.lookup("tenant", "acme"), []string{"dead", "left", "oldest dead"})
	oldest := f.get("oldest dead")
	_, err = f.s.TrimDead(f.ctx, f.shard, store.Entry{Due: oldest.Finished, ID: oldest.ID}, 10)
	f.ok("trim dead", err)
	same(f, "without the oldest dead", f.lookup("tenant", "acme"), []string{"dead", "left"})
	_, _, err = f.s.RemoveDead(f.ctx, f.shard, []string{"dead"})
	f.ok("remove dead", err)
	same(f, "without the dead", f.lookup("tenant", "acme"), []string{"left"})
	same(f, "by path", f.lookupAll(store.IndexQuery{Name: "path", Prefix: true, Limit: 10}), []string{"left"})

	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	f.add(indexed("new", due, "tenant=acme"))
	same(f, "after a drop", f.lookup("tenant", "acme"), []string{"new"})
}

// lookupReplaced has tasks in the place of finished ones, and of the one that had a key.
func lookupReplaced(f *fixture) {
	due := f.now() - 1000
	for _, id := range []string{"a", "b"} {
		f.add(indexed(id, due, "tenant=old"))
		f.ack(long, store.OK, store.Ack{ID: id, Token: f.hold(id)[0]})
	}
	f.add(indexed("a", due, "tenant=new"))
	same(f, "the successor", f.lookup("tenant", "new"), []string{"a"})
	same(f, "what is left of the done", f.lookup("tenant", "old"), []string{"b"})
	_, results, err := f.s.HoldNew(f.ctx, f.shard, f.fence, []*store.Task{indexed("b", due, "tenant=held"), indexed("c", due, "tenant=held")}, holdsOf(long, "b", "c"))
	f.ok("hold new", err)
	f.statuses("hold new", results, store.Held, store.Held)
	same(f, "the held", f.lookup("tenant", "held"), []string{"b", "c"})
	same(f, "what is left of the done", f.lookup("tenant", "old"), nil)

	keyed := func(id, tenant string) *store.Task {
		t := indexed(id, due, "tenant="+tenant)
		t.Key = &store.Key{Text: "k", OnConflict: store.KeyReplace}
		return t
	}
	for i, tenant := range []string{"first", "second"} {
		_, _, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{keyed(fmt.Sprint("keyed-", i), tenant)})
		f.ok("add keyed", err)
	}
	same(f, "the replaced", f.lookup("tenant", "first"), nil)
	same(f, "in its place", f.lookup("tenant", "second"), []string{"keyed-0"})

	refused := indexed("a", due, "tenant=refused")
	refused.Fingerprint++
	_, results, err = f.s.Add(f.ctx, f.shard, []*store.Task{refused})
	f.ok("add", err)
	f.statuses("add", results, store.Conflict)
	same(f, "one that was refused", f.lookup("tenant", "refused"), nil)
}

func lookupEdited(f *fixture) {
	f.add(indexed("a", f.now().Add(long), "tenant=old", "path=/a"))
	edit := func(change func(*store.Task)) {
		f.Helper()
		next := f.get("a").Task
		next.Indexed = tenantAndPath
		change(&next)
		_, results, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Task: &next}})
		f.ok("edit", err)
		f.statuses("edit", results, store.OK)
	}
	_, _, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Due: f.now()}})
	f.ok("reschedule", err)
	same(f, "after a move", f.lookup("tenant", "old"), []string{"a"})
	edit(func(t *store.Task) { t.Payload = []byte("other") })
	same(f, "after an edit of the payload", f.lookup("tenant", "old"), []string{"a"})
	edit(func(t *store.Task) { t.Attributes[0].Value = "new" })
	same(f, "the old value", f.lookup("tenant", "old"), nil)
	same(f, "the new value", f.lookup("tenant", "new"), []string{"a"})
	edit(func(t *store.Task) { t.Attributes[0].Value = "old" })
	same(f, "the old value again", f.lookup("tenant", "old"), []string{"a"})
	edit(func(t *store.Task) { t.Attributes = t.Attributes[1:] })
	same(f, "no value", f.lookup("tenant", "old"), nil)
	same(f, "the other attribute", f.lookup("path", "/a"), []string{"a"})
	edit(func(t *store.Task) { t.Attributes = nil })
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	same(f, "all gone", f.lookup("path", "/a"), nil)
	equal(f, "state of the index", f.stats().Index.Ready, tenantAndPath)
}

// lookupValues has values that begin like others, long ones, and bytes of which stores
// make something.
func lookupValues(f *fixture) {
	due := f.now().Add(long)
	stem := strings.Repeat("x", 128)
	values := map[string]string{
		"1": "a", "2": "ab", "3": "a\x00b", "4": "", "5": stem, "6": stem + "y", "7": stem + "z", "8": "ü", "9": "b",
		"6ba7b810-9dad-11d1-80b4-00c04fd430c8": "a", "\x01\x00": "a",
	}
	for id, value := range values {
		f.add(indexed(id, due, "tenant="+value, "tenan=no", "path=a"))
	}
	for _, value := range values {
		var want []string
		for id, v := range values {
			if store.NewIndexEntry(v, "") == store.NewIndexEntry(value, "") {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		same(f, fmt.Sprintf("tasks of %q", value), f.lookup("tenant", value), want)
	}
	for prefix, want := range map[string][]string{
		"": slices.Collect(maps.Keys(values)), "a": {"1", "2", "3", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "\x01\x00"}, "ab": {"2"}, "x": {"5", "6", "7"}, stem: {"5", "6", "7"}, "c": nil,
	} {
		got := f.lookupAll(store.IndexQuery{Name: "tenant", Value: prefix, Prefix: true, Limit: 2})
		slices.Sort(got)
		slices.Sort(want)
		same(f, fmt.Sprintf("tasks of values from %q on", prefix), got, want)
	}
}

func lookupPages(f *fixture) {
	var batch []*store.Task
	for i, id := range numbered(1500) {
		batch = append(batch, indexed(id, f.now().Add(long), fmt.Sprint("tenant=", i%3), fmt.Sprintf("path=/%d/%d", i%2, i)))
	}
	f.add(batch...)
	got := f.lookupAll(store.IndexQuery{Name: "tenant", Value: "1", Limit: 7})
	equal(f, "number of tasks", len(got), 500)
	equal(f, "in order", slices.IsSorted(got), true)
	q := store.IndexQuery{Name: "path", Value: "/1/", Prefix: true, Limit: 7}
	page, err := f.s.Lookup(f.ctx, f.shard, q)
	f.ok("lookup", err)
	gone := page[6]
	_, _, err = f.s.Remove(f.ctx, f.shard, store.Removals(gone.ID, page[0].ID))
	f.ok("remove", err)
	q.After = &gone
	equal(f, "number of tasks behind one that is gone", len(f.lookupAll(q)), 743)
	q.After = &store.IndexEntry{Value: "/0/999", ID: "\xff"}
	equal(f, "number of tasks behind a position before them", len(f.lookupAll(q)), 748)
	q.After = &store.IndexEntry{Value: "/2", ID: ""}
	equal(f, "number of tasks behind a position behind them", len(f.lookupAll(q)), 0)
}

func (f *fixture) notIndexed(name string) {
	f.Helper()
	_, err := f.s.Lookup(f.ctx, f.shard, store.IndexQuery{Name: name, Limit: 1})
	f.refused("lookup by "+name, err, store.ErrNotIndexed)
}

func lookupRefused(f *fixture) {
	f.notIndexed("tenant")
	f.add(indexed("a", f.now(), "tenant=acme", "color=red"))
	same(f, "indexed", f.lookup("tenant", "acme"), []string{"a"})
	f.notIndexed("color")
	tenantOnly := attributed("b", f.now(), "tenant=acme")
	tenantOnly.Indexed = store.NewIndexSet("tenant")
	f.add(tenantOnly)
	same(f, "indexed", f.lookup("tenant", "acme"), []string{"a", "b"})
	f.notIndexed("path")
	f.add(attributed("c", f.now(), "tenant=acme"))
	f.notIndexed("tenant")
	f.add(indexed("d", f.now(), "tenant=acme"))
	f.notIndexed("tenant")
}

func reindexBefore(f *fixture) {
	for i, id := range numbered(7) {
		f.add(attributed(id, f.now()-1, "tenant=acme", fmt.Sprint("path=/", i)))
	}
	f.done("nothing to find")
	f.reindex(tenantAndPath)
	same(f, "tasks of before", f.lookup("tenant", "acme"), numbered(7))
	f.add(indexed("later", f.now(), "tenant=acme"))
	same(f, "and after", f.lookup("tenant", "acme"), append([]string{"later"}, numbered(7)...))
	f.reindex(tenantAndPath)
	same(f, "again", f.lookup("tenant", "acme"), append([]string{"later"}, numbered(7)...))

	f.reindex(store.NewIndexSet("path", "color"))
	f.notIndexed("tenant")
	same(f, "by an attribute that stays", f.lookup("path", "/3"), numbered(7)[3:4])
	same(f, "by one that no task has", f.lookup("color", "red"), nil)
	f.ack(0, store.OK, store.Ack{ID: "later", Token: f.hold("later")[0]})
}

// reindexHeld has holds that go on, and end, after their tasks were looked at.
func reindexHeld(f *fixture) {
	ids := []string{"acked", "done", "nacked", "extended", "recovered", "requeued"}
	for _, id := range ids {
		f.add(attributed(id, f.now()-1, "tenant=acme"))
	}
	tokens := f.hold("acked", "done", "nacked", "extended", "requeued")
	f.nack(store.Nack{ID: "requeued", Token: tokens[4], Reason: store.ReasonPermanent})
	short := f.holdFor(time.Millisecond, "recovered")[0]
	f.reindex(tenantAndPath)
	slices.Sort(ids)
	same(f, "held and finished tasks", f.lookup("tenant", "acme"), ids)

	_, extended, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: "extended", Token: tokens[3], Visibility: long}})
	f.ok("extend", err)
	f.statuses("extend", extended, store.OK)
	f.ack(0, store.OK, store.Ack{ID: "acked", Token: tokens[0]}, store.Ack{ID: "extended", Token: tokens[3]})
	f.ack(long, store.OK, store.Ack{ID: "done", Token: tokens[1]})
	equal(f, "status of the nack", f.nack(store.Nack{ID: "nacked", Token: tokens[2]}).Status, store.OK)
	waitUntil(f, f.s, f.get("recovered").Deadline)
	_, recovered, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: "recovered", Token: short}})
	f.ok("recover", err)
	f.statuses("recover", recovered, store.OK)
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"requeued"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK)
	same(f, "what is left", f.lookup("tenant", "acme"), []string{"done", "nacked", "recovered", "requeued"})
	_, _, err = f.s.Remove(f.ctx, f.shard, store.Removals("nacked", "recovered", "requeued"))
	f.ok("remove", err)
	same(f, "in the end", f.lookup("tenant", "acme"), []string{"done"})
	f.add(task("acked", f.now()))
	equal(f, "an id that was free", f.get("acked").State, store.StateReady)
}

func reindexEnded(f *fixture) {
	begin := func() string {
		f.Helper()
		next, err := f.s.Reindex(f.ctx, f.shard, tenantAndPath, "", 1)
		f.ok("reindex", err)
		equal(f, "there is more", next != "", true)
		return next
	}
	f.ready(numbered(300)...)
	next := begin()
	f.add(attributed("silent", f.now(), "tenant=acme"))
	_, err := f.s.Reindex(f.ctx, f.shard, tenantAndPath, next, 1000)
	f.refused("reindex after a task came without word", err, store.ErrReindexed)
	f.notIndexed("tenant")

	next = begin()
	f.add(indexed("tells", f.now(), "tenant=acme"))
	begin()
	_, err = f.s.Reindex(f.ctx, f.shard, tenantAndPath, next, 1000)
	f.refused("reindex after another began", err, store.ErrReindexed)
	f.reindex(tenantAndPath)
	same(f, "in the end", f.lookup("tenant", "acme"), []string{"silent", "tells"})
}

func reindexOut(f *fixture) {
	for _, id := range numbered(5) {
		f.add(indexed(id, f.now()-1, "tenant=acme", "path=/"))
	}
	f.reindex("")
	f.notIndexed("tenant")
	f.ack(0, store.OK, store.Ack{ID: numbered(1)[0], Token: f.hold(numbered(1)[0])[0]})
	f.reindex(tenantAndPath)
	same(f, "back again", f.lookup("tenant", "acme"), numbered(5)[1:])
}

func reindexSealed(f *fixture) {
	f.add(attributed("a", f.now(), "tenant=acme"))
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.reindex(tenantAndPath)
	same(f, "tasks of a sealed shard", f.lookup("tenant", "acme"), []string{"a"})
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	same(f, "after the ack", f.lookup("tenant", "acme"), nil)
	_, _, err := f.s.Add(f.ctx, f.shard, []*store.Task{indexed("b", f.now(), "tenant=acme")})
	f.refused("add", err, store.ErrSealed)
}

func reindexCursor(f *fixture) {
	f.ready("a", "b")
	for _, cursor := range []string{"x", "::", "zz:0"} {
		_, err := f.s.Reindex(f.ctx, f.shard, tenantAndPath, cursor, 1)
		if !errors.Is(err, store.ErrBadCursor) {
			f.Fatalf("cursor %q: got error %v, want %v", cursor, err, store.ErrBadCursor)
		}
	}
}

// indexSet seldom changes what is said of new tasks.
func (p *pair) indexSet(rt *rapid.T) {
	if !often(rt, "go on") {
		p.drawIndexed(rt)
	}
}

func (p *pair) drawIndexed(rt *rapid.T) {
	p.indexed = oneOf(rt, "index set", "", store.NewIndexSet("k"), store.NewIndexSet("k", "l"), store.NewIndexSet("l", "m"))
}

func (p *pair) reindex(rt *rapid.T) {
	set := oneOf(rt, "reindexed set", p.indexed, p.indexed, "", store.NewIndexSet("k", "l"))
	p.both(rt, "reindex", func(s *side) (any, error) {
		for cursor := ""; ; {
			next, err := s.Reindex(rt.Context(), p.shard, set, cursor, 3)
			if cursor = next; cursor == "" || err != nil {
				return nil, err
			}
		}
	})
}

// checkLookup compares what is found by attributes, and that with a walk.
func (p *pair) checkLookup(rt *rapid.T) {
	limit := rapid.IntRange(1, 10).Draw(rt, "lookup limit")
	for _, q := range []store.IndexQuery{
		{Name: "k", Value: "v"}, {Name: "k", Value: "w\x00"}, {Name: "k", Prefix: true}, {Name: "l", Value: "v", Prefix: true}, {Name: "m"},
	} {
		q.Limit = limit
		p.both(rt, "lookup", func(s *side) (any, error) {
			var found []string
			for q := q; ; {
				page, err := s.Lookup(rt.Context(), p.shard, q)
				if err != nil {
					return nil, err
				}
				for _, e := range page {
					found = append(found, e.ID)
				}
				if len(page) < limit {
					break
				}
				q.After = &page[limit-1]
			}
			slices.Sort(found)
			if walked := p.walk(rt, s, &q); !slices.Equal(found, walked) {
				rt.Fatalf("lookup of %+v: got %q, and a walk found %q", q, found, walked)
			}
			return found, nil
		})
	}
}

// walk returns the ids that a lookup is to find.
func (p *pair) walk(rt *rapid.T, s *side, q *store.IndexQuery) (ids []string) {
	_, snapshots, err := s.Get(rt.Context(), p.shard, propertyIDs())
	if err != nil {
		rt.Fatalf("get: %v", err)
	}
	for i := range snapshots {
		for _, a := range snapshots[i].Attributes {
			if a.Key == q.Name && q.Wants(store.NewIndexEntry(a.Value, "")) {
				ids = append(ids, snapshots[i].ID)
			}
		}
	}
	slices.Sort(ids)
	return ids
}
