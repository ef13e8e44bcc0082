package storetest

import (
	"fmt"
	"sync"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

func keyedCases() []entry {
	return []entry{
		{"Key/OneLiveTask", keyedLive},
		{"Key/DeadAndDoneTrapNothing", keyedTrapsNothing},
		{"Key/Window", keyedWindow},
		{"Key/Reject", keyedReject},
		{"Key/ReplaceWhilePending", keyedReplace},
		{"Key/ReplacePassesTheKey", keyedPasses},
		{"Key/RepeatedCall", keyedRepeated},
		{"Key/Sealed", keyedSealed},
		{"Key/InOneBatch", keyedBatch},
		{"Key/Forgotten", keyedForgotten},
		{"Key/EndsWithTheShard", keyedDropped},
		{"Key/OneOfManyRivalsGetsIt", keyedRivals},
	}
}

// keyed returns a task with a key that is due in an hour.
func (f *fixture) keyed(id, key string, window time.Duration, rule store.KeyConflict) *store.Task {
	f.Helper()
	t := task(id, f.now().Add(long))
	t.Key = &store.Key{Text: key, Window: window, OnConflict: rule}
	return t
}

// addKeyed adds tasks with keys, and checks the outcomes and whose the keys are.
func (f *fixture) addKeyed(want store.Status, holder string, t *store.Task) store.AddResult {
	f.Helper()
	_, results, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{t})
	f.ok("add keyed", err)
	f.statuses("add keyed "+t.ID, results, want)
	equal(f, "id under the key of "+t.ID, results[0].ID, holder)
	return results[0]
}

func keyedLive(f *fixture) {
	before := f.seq()
	first := f.keyed("a", "order/7 ü", 0, store.KeyReturn)
	f.addKeyed(store.Added, "a", first)
	equal(f, "seq", f.seq(), before+1)
	equal(f, "stored key", f.get("a").Key.Text, "order/7 ü")

	r := f.addKeyed(store.Duplicate, "a", f.keyed("b", "order/7 ü", 0, store.KeyReturn))
	equal(f, "due time of the task that has the key", r.Due, first.Due)
	equal(f, "its state", r.State, store.StateScheduled)
	equal(f, "seq", f.seq(), before+1)
	f.addKeyed(store.Added, "c", f.keyed("c", "order/8", 0, store.KeyReturn))
	f.states(store.StateUnknown, "b")
	equal(f, "number of pending tasks", f.stats().Pending, 2)

	ready := f.keyed("d", "order/9", 0, store.KeyReturn)
	ready.Due = f.now() - 1
	f.addKeyed(store.Added, "d", ready)
	f.hold("d")
	r = f.addKeyed(store.Duplicate, "d", f.keyed("e", "order/9", 0, store.KeyReturn))
	equal(f, "state of a running task", r.State, store.StateRunning)
	equal(f, "due time of a running task", r.Due, ready.Due)
	equal(f, "token", r.Token, store.Token{})
}

// keyedTrapsNothing: an archived task blocked its id, and so what was scheduled under
// it, for good (hibiken/asynq#492, #842, #1055), unnoticed for days where 36 monitors
// stopped (0xfurai/peekaping#266).
func keyedTrapsNothing(f *fixture) {
	ends := map[string]func(id string){
		"removed": func(id string) {
			_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals(id))
			f.ok("remove", err)
			f.statuses("remove", removed, store.OK)
		},
		"acked": func(id string) { f.ack(0, store.OK, store.Ack{ID: id, Token: f.hold(id)[0]}) },
		"kept":  func(id string) { f.ack(long, store.OK, store.Ack{ID: id, Token: f.hold(id)[0]}) },
		"dead": func(id string) {
			f.nack(store.Nack{ID: id, Token: f.hold(id)[0], Reason: store.ReasonMaxRetries})
		},
	}
	for how, end := range ends {
		first := f.keyed("1-"+how, how, 0, store.KeyReject)
		first.Due = f.now() - 1
		f.addKeyed(store.Added, first.ID, first)
		f.addKeyed(store.Taken, first.ID, f.keyed("2-"+how, how, 0, store.KeyReject))
		end(first.ID)
		f.addKeyed(store.Added, "3-"+how, f.keyed("3-"+how, how, 0, store.KeyReject))
		f.addKeyed(store.Taken, "3-"+how, f.keyed("4-"+how, how, 0, store.KeyReject))
	}
	f.states(store.StateDead, "1-dead")
	f.states(store.StateDone, "1-kept")
}

func keyedWindow(f *fixture) {
	first := f.keyed("a", "k", long, store.KeyReturn)
	first.Due = f.now() - 1
	f.addKeyed(store.Added, "a", first)
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	f.states(store.StateUnknown, "a")
	r := f.addKeyed(store.Duplicate, "a", f.keyed("b", "k", long, store.KeyReturn))
	equal(f, "due time that the finished task had", r.Due, first.Due)
	equal(f, "state of what is gone", r.State, store.StateUnknown)
	f.addKeyed(store.Taken, "a", f.keyed("b", "k", 0, store.KeyReject))

	// A short window ends, whether or not the task does.
	f.addKeyed(store.Added, "c", f.keyed("c", "short", short, store.KeyReturn))
	waitUntil(f, f.s, f.now().Add(short+slack))
	f.addKeyed(store.Added, "d", f.keyed("d", "short", long, store.KeyReturn))
	f.addKeyed(store.Duplicate, "d", f.keyed("e", "short", long, store.KeyReturn))
	f.states(store.StateScheduled, "c", "d")
}

func keyedReject(f *fixture) {
	f.addKeyed(store.Added, "a", f.keyed("a", "k", 0, store.KeyReject))
	r := f.addKeyed(store.Taken, "a", f.keyed("b", "k", 0, store.KeyReject))
	equal(f, "state", r.State, store.StateScheduled)
	same := f.keyed("b", "k", 0, store.KeyReject)
	same.Key.SameRepeats = true
	f.addKeyed(store.Duplicate, "a", same)
	same.Fingerprint++
	f.addKeyed(store.Taken, "a", same)
	equal(f, "number of pending tasks", f.stats().Pending, 1)
}

// keyedReplace is debounce (hibiken/asynq#1038).
func keyedReplace(f *fixture) {
	first := f.keyed("a", "k", 0, store.KeyReplace)
	first.Due, first.Traits = f.now()-1, &store.Traits{Priority: 4, FairnessKey: "tenant"}
	f.addKeyed(store.Added, "a", first)
	failed := f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Error: "no luck"})
	waitUntil(f, f.s, failed.Due)
	before := f.seq()

	second := f.keyed("b", "k", 0, store.KeyReplace)
	second.Payload, second.Fingerprint, second.MaxRetries = []byte("second"), 8, 2
	second.Due = f.now().Add(2 * long)
	second.Traits = &store.Traits{Priority: 7}
	r := f.addKeyed(store.Replaced, "a", second)
	equal(f, "due time", r.Due, second.Due)
	equal(f, "seq", f.seq(), before+1)
	f.states(store.StateUnknown, "b")
	got := f.get("a")
	equal(f, "payload", string(got.Payload), "second")
	equal(f, "fingerprint", got.Fingerprint, 8)
	equal(f, "retries", got.MaxRetries, 2)
	equal(f, "due time", got.Due, second.Due)
	equal(f, "attempt", got.Attempt, 0)
	equal(f, "version", got.Version(), 2)
	equal(f, "last error", got.LastError, "")
	equal(f, "traits", *got.Traits, *second.Traits)
	_, entries, err := f.s.Window(f.ctx, f.shard, store.WindowQuery{To: second.Due, Limit: 10})
	f.ok("window", err)
	equal(f, "number of entries", len(entries), 1)
	equal(f, "traits of the entry", *entries[0].Traits, *second.Traits)
	lanes, err := f.s.Lanes(f.ctx, f.shard, nil, 10)
	f.ok("lanes", err)
	same(f, "lanes", lanes, []store.LaneHead{{Lane: second.Traits.Lane(), Due: second.Due}})

	// Another call is another replacement, the same call is not.
	f.addKeyed(store.Duplicate, "a", second)
	third := f.keyed("c", "k", 0, store.KeyReplace)
	third.Due = f.now() - 1
	f.addKeyed(store.Replaced, "a", third)
	equal(f, "traits", f.get("a").Traits, nil)
	_, held := f.tryHold(holdsOf(long, "a"), store.OK)
	equal(f, "attempt", held[0].Task.Attempt, 1)
	equal(f, "payload", string(held[0].Task.Payload), "payload of c")
	equal(f, "number of pending tasks", f.stats().Pending, 0)
}

// keyedPasses: what runs is not replaced; the new task runs after it, and has the key.
func keyedPasses(f *fixture) {
	for i, window := range []time.Duration{0, long} {
		id := func(n int) string { return fmt.Sprintf("%d-%d", i, n) }
		first := f.keyed(id(1), id(0), window, store.KeyReplace)
		first.Due = f.now() - 1
		f.addKeyed(store.Added, id(1), first)
		token := f.hold(id(1))[0]
		f.addKeyed(store.Passed, id(2), f.keyed(id(2), id(0), window, store.KeyReplace))
		f.addKeyed(store.Duplicate, id(2), f.keyed(id(3), id(0), window, store.KeyReturn))
		f.ack(0, store.OK, store.Ack{ID: id(1), Token: token})
		f.addKeyed(store.Replaced, id(2), f.keyed(id(4), id(0), window, store.KeyReplace))
		f.states(store.StateScheduled, id(2))
	}
}

// keyedRepeated repeats calls whose answers were lost.
func keyedRepeated(f *fixture) {
	for _, rule := range []store.KeyConflict{store.KeyReturn, store.KeyReject, store.KeyReplace} {
		id, key := fmt.Sprint("a", rule), fmt.Sprint("k", rule)
		first := f.keyed(id, key, 0, rule)
		f.addKeyed(store.Added, id, first)
		before := f.seq()
		again := f.keyed(id, key, 0, rule)
		again.Due += 1000
		r := f.addKeyed(store.Duplicate, id, again)
		equal(f, "due time of the first call", r.Due, first.Due)
		equal(f, "seq", f.seq(), before)
	}
	// A late repeat of what was replaced does not replace what came after it.
	for i, window := range []time.Duration{0, long} {
		id, key := func(n int) string { return fmt.Sprintf("late%d-%d", i, n) }, fmt.Sprint("late", i)
		request := func(n int) *store.Task { return f.keyed(id(n), key, window, store.KeyReplace) }
		first := request(0)
		first.Due = f.now() - 1
		f.addKeyed(store.Added, id(0), first)
		token := f.hold(id(0))[0]
		f.addKeyed(store.Passed, id(1), request(1))
		f.ack(0, store.OK, store.Ack{ID: id(0), Token: token})
		f.addKeyed(store.Duplicate, id(1), request(0))
		for n := 2; n < store.KeptRequests+2; n++ {
			f.addKeyed(store.Replaced, id(1), request(n))
			f.addKeyed(store.Duplicate, id(1), request(1))
			f.addKeyed(store.Duplicate, id(1), request(2))
			f.addKeyed(store.Duplicate, id(1), request((n+2)/2))
		}
		equal(f, "payload", string(f.get(id(1)).Payload), "payload of "+id(store.KeptRequests+1))
		f.addKeyed(store.Replaced, id(1), request(0)) // too many came after it
	}
	// An id that lives under no key, or another one, is an id as in Add.
	f.scheduled("plain")
	f.addKeyed(store.Duplicate, "plain", f.keyed("plain", "other", 0, store.KeyReturn))
	other := f.keyed("plain", "other", 0, store.KeyReplace)
	other.Fingerprint = 8
	f.addKeyed(store.Conflict, "plain", other)
	f.addKeyed(store.Added, "b", f.keyed("b", "other", 0, store.KeyReturn))
}

func keyedSealed(f *fixture) {
	f.addKeyed(store.Added, "a", f.keyed("a", "k", 0, store.KeyReturn))
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.addKeyed(store.Duplicate, "a", f.keyed("b", "k", 0, store.KeyReturn))
	f.addKeyed(store.Taken, "a", f.keyed("b", "k", 0, store.KeyReject))
	next := f.keyed("b", "k", 0, store.KeyReplace)
	next.Due = f.now() - 1
	f.addKeyed(store.Replaced, "a", next)
	f.addKeyed(store.Closed, "c", f.keyed("c", "free", 0, store.KeyReturn))
	f.hold("a")
	f.addKeyed(store.Closed, "d", f.keyed("d", "k", 0, store.KeyReplace))
	f.states(store.StateUnknown, "b", "c", "d")
}

func keyedBatch(f *fixture) {
	batch := []*store.Task{
		f.keyed("a", "k", 0, store.KeyReturn), f.keyed("b", "k", 0, store.KeyReturn), f.keyed("c", "l", 0, store.KeyReturn),
		f.keyed("d", "k", 0, store.KeyReplace), f.keyed("e", "l", 0, store.KeyReject), f.keyed("f", "k", 0, store.KeyReturn),
	}
	before := f.seq()
	_, results, err := f.s.AddKeyed(f.ctx, f.shard, batch)
	f.ok("add keyed", err)
	f.statuses("add keyed", results, store.Added, store.Duplicate, store.Added, store.Replaced, store.Taken, store.Duplicate)
	for i, want := range []string{"a", "a", "c", "a", "c", "a"} {
		equal(f, "id", results[i].ID, want)
	}
	equal(f, "payload", string(f.get("a").Payload), "payload of d")
	equal(f, "seq", f.seq(), before+1)

	var many []*store.Task
	for i, id := range numbered(700) {
		many = append(many, f.keyed(id, fmt.Sprint("key ", i%350), 0, store.KeyReturn))
	}
	_, results, err = f.s.AddKeyed(f.ctx, f.shard, many)
	f.ok("add keyed", err)
	f.statuses("add keyed", results, append(repeat(store.Added, 350), repeat(store.Duplicate, 350)...)...)
}

func keyedForgotten(f *fixture) {
	equal(f, "keys at first", f.stats().Keys, false)
	f.addKeyed(store.Added, "b", f.keyed("b", "l", long, store.KeyReturn))
	f.addKeyed(store.Added, "a", f.keyed("a", "k", short, store.KeyReturn)) // the last: each looks at keys whose time has come
	equal(f, "keys", f.stats().Keys, true)
	waitUntil(f, f.s, f.now().Add(short+slack))
	for want := range map[int]bool{1: true} {
		looked, err := f.s.TrimKeys(f.ctx, f.shard, 10)
		f.ok("trim keys", err)
		equal(f, "keys looked at", looked, want)
	}
	looked, err := f.s.TrimKeys(f.ctx, f.shard, 10)
	f.ok("trim keys", err)
	equal(f, "keys looked at again", looked, 0)
	f.addKeyed(store.Duplicate, "b", f.keyed("c", "l", long, store.KeyReturn))
	equal(f, "keys", f.stats().Keys, true)

	// The only key of a shard is gone with its window.
	other := store.Shard{Topic: "other", N: 1}
	_, _, err = f.s.AddKeyed(f.ctx, other, []*store.Task{f.keyed("a", "k", short, store.KeyReturn)})
	f.ok("add keyed", err)
	waitUntil(f, f.s, f.now().Add(short+slack))
	_, err = f.s.TrimKeys(f.ctx, other, 10)
	f.ok("trim keys", err)
	stats, err := f.s.Stats(f.ctx, []store.Shard{other})
	f.ok("stats", err)
	equal(f, "keys at last", stats[0].Keys, false)
}

func keyedDropped(f *fixture) {
	f.addKeyed(store.Added, "a", f.keyed("a", "k", long, store.KeyReject))
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	equal(f, "keys", f.stats().Keys, false)
	f.addKeyed(store.Added, "b", f.keyed("b", "k", long, store.KeyReject))
}

func keyedRivals(f *fixture) {
	const rivals = 16
	results := make([][]store.AddResult, rivals)
	var wg sync.WaitGroup
	for i := range rivals {
		wg.Go(func() {
			var batch []*store.Task
			for k := range 20 {
				t := task(fmt.Sprintf("%d-%d", i, k), 1<<45)
				t.Key = &store.Key{Text: fmt.Sprint("key ", k), OnConflict: store.KeyReject}
				batch = append(batch, t)
			}
			var err error
			if _, results[i], err = f.s.AddKeyed(f.ctx, f.shard, batch); err != nil {
				f.Error(err)
			}
		})
	}
	wg.Wait()
	for k := range 20 {
		winners, ids := 0, make(map[string]bool)
		for _, r := range results {
			if r[k].Status == store.Added {
				winners++
			}
			ids[r[k].ID] = true
		}
		equal(f, fmt.Sprint("rivals that got key ", k), winners, 1)
		equal(f, fmt.Sprint("ids told of key ", k), len(ids), 1)
	}
	equal(f, "number of pending tasks", f.stats().Pending, 20)
}

func (p *pair) addKeyed(rt *rapid.T) {
	batch := batchOf(rt, func(id string) *store.Task {
		t := p.newTask(rt, id)
		t.Key = &store.Key{
			Text:        oneOf(rt, "key", "k", "l", "ö \x00"),
			Window:      oneOf(rt, "window", 0, 0, time.Millisecond, long),
			OnConflict:  oneOf(rt, "on conflict", store.KeyReturn, store.KeyReject, store.KeyReplace),
			SameRepeats: rapid.Bool().Draw(rt, "same repeats"),
		}
		return t
	})
	p.pass(rt)
	p.both(rt, "add keyed", func(s *side) (any, error) {
		stamp, results, err := s.AddKeyed(rt.Context(), p.shard, batch[:1])
		return []any{stamp.Seq, p.added(results)}, err
	})
	p.pass(rt)
}

// trimKeys changes nothing that can be seen.
func (p *pair) trimKeys(rt *rapid.T) {
	limit := rapid.IntRange(0, 3).Draw(rt, "trim keys limit")
	p.both(rt, "trim keys", func(s *side) (any, error) {
		_, err := s.TrimKeys(rt.Context(), p.shard, limit)
		return nil, err
	})
}
