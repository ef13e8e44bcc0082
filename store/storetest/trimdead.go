package storetest

import (
	"cmp"
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

func trimDeadCases() []entry {
	return []entry{
		{"TrimDead/OldestFirst", trimDeadOldest},
		{"TrimDead/LeavesWhatDiedLater", trimDeadLater},
		{"TrimDead/OnlyTheDead", trimDeadOnly},
		{"TrimDead/FreesTheID", trimDeadFrees},
		{"TrimDead/Many", trimDeadMany},
		{"DeadWindow/Pages", deadWindowPages},
	}
}

// deadWindow returns all dead tasks, in order.
func (f *fixture) deadWindow() []store.Entry {
	f.Helper()
	all, err := f.s.DeadWindow(f.ctx, f.shard, store.WindowQuery{To: math.MaxInt64, Limit: 1 << 20})
	f.ok("dead window", err)
	return all
}

func (f *fixture) trimDead(upTo store.Entry, limit, want int) {
	f.Helper()
	n, err := f.s.TrimDead(f.ctx, f.shard, upTo, limit)
	f.ok("trim dead", err)
	equal(f, "number of trimmed tasks", n, want)
}

// diedTogether makes dead letters in one call, so most likely of one millisecond.
func (f *fixture) diedTogether(ids ...string) {
	f.Helper()
	f.ready(ids...)
	nacks := make([]store.Nack, len(ids))
	for i, token := range f.hold(ids...) {
		nacks[i] = store.Nack{ID: ids[i], Token: token, Reason: store.ReasonPermanent}
	}
	_, results, err := f.s.Nack(f.ctx, f.shard, nacks)
	f.ok("nack", err)
	f.statuses("nack", results, repeat(store.OK, len(ids))...)
}

// trimDeadOldest goes by the position, so that tasks of one millisecond are told apart.
func trimDeadOldest(f *fixture) {
	f.trimDead(store.Entry{Due: math.MaxInt64}, 10, 0)
	f.diedTogether("c", "a", "0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2c", "b")
	all := f.deadWindow()
	same(f, "dead tasks", idsOf(all), []string{"0190f3a4-7c1e-7b3a-9d52-3f6f0e8a1b2c", "a", "b", "c"})
	equal(f, "time of the entry", all[0].Due, f.get(all[0].ID).Finished)

	f.trimDead(all[2], 0, 0)
	f.trimDead(all[2], 1, 1)
	f.states(store.StateUnknown, all[0].ID)
	f.trimDead(all[2], 10, 2)
	f.trimDead(all[2], 10, 0)
	same(f, "dead tasks", idsOf(f.deadWindow()), []string{"c"})
	f.states(store.StateUnknown, "a", "b")
	f.states(store.StateDead, "c")
	equal(f, "number of dead tasks", f.stats().Dead, 1)
	equal(f, "length of the list", len(f.walk(store.KindDead, 10)), 1)
}

func trimDeadLater(f *fixture) {
	f.diedTogether("a")
	first := f.deadWindow()[0]
	waitUntil(f, f.s, first.Due+1)
	f.diedTogether("b")
	f.trimDead(store.Entry{Due: first.Due}, 10, 0) // before every id of that time
	f.trimDead(store.Entry{Due: first.Due + 1}, 10, 1)
	f.states(store.StateDead, "b")

	// One that was requeued and died again is as young as its last death.
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"b"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK)
	second := f.stats().Now
	waitUntil(f, f.s, store.Millis(second.UnixMilli())+2)
	f.nack(store.Nack{ID: "b", Token: f.hold("b")[0], Reason: store.ReasonPermanent})
	f.trimDead(store.Entry{Due: store.Millis(second.UnixMilli()) + 1, ID: "z"}, 10, 0)
	f.states(store.StateDead, "b")
}

func trimDeadOnly(f *fixture) {
	f.scheduled("scheduled")
	f.held("running")
	f.done("done")
	f.dead("dead")
	f.expired("expired")
	f.trimDead(store.Entry{Due: math.MaxInt64}, 10, 2)
	f.states(store.StateUnknown, "dead", "expired")
	f.states(store.StateScheduled, "scheduled")
	f.states(store.StateRunning, "running")
	f.states(store.StateDone, "done")
}

func trimDeadFrees(f *fixture) {
	first := f.nack(store.Nack{ID: "a", Token: f.held("a"), Error: "no luck"})
	waitUntil(f, f.s, first.Due)
	f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Reason: store.ReasonMaxRetries, Error: "no luck"})
	f.trimDead(store.Entry{Due: math.MaxInt64}, 10, 1)
	f.ready("a")
	got := f.get("a")
	equal(f, "attempt", got.Attempt, 0)
	equal(f, "last error", got.LastError, "")
}

func trimDeadMany(f *fixture) {
	ids := numbered(2500)
	f.diedTogether(ids...)
	all := f.deadWindow()
	equal(f, "number of entries", len(all), 2500)
	f.trimDead(all[2299], 2500, 2300)
	same(f, "dead tasks", idsOf(f.deadWindow()), ids[2300:])
	equal(f, "number of dead tasks", f.stats().Dead, 200)
}

func deadWindowPages(f *fixture) {
	f.diedTogether(numbered(7)...)
	f.scheduled("pending")
	var walked []string
	w := store.WindowQuery{To: math.MaxInt64, Limit: 3}
	for {
		page, err := f.s.DeadWindow(f.ctx, f.shard, w)
		f.ok("dead window", err)
		walked = append(walked, idsOf(page)...)
		if len(page) < w.Limit {
			break
		}
		w.After = page[len(page)-1]
	}
	same(f, "walk", walked, numbered(7))
	none, err := f.s.DeadWindow(f.ctx, f.shard, store.WindowQuery{To: f.deadWindow()[0].Due - 1, Limit: 10})
	f.ok("dead window", err)
	equal(f, "number of tasks that died before", len(none), 0)
}

// trimDead deletes about half of the dead tasks: as many as the model has under the
// position that is drawn in it.
func (p *pair) trimDead(rt *rapid.T) {
	limit := rapid.IntRange(0, 4).Draw(rt, "trim dead limit")
	p.both(rt, "trim dead", func(s *side) (any, error) {
		all, err := s.DeadWindow(rt.Context(), p.shard, store.WindowQuery{To: math.MaxInt64, Limit: 100})
		if err != nil || len(all) == 0 {
			return len(all), err
		}
		if !slices.IsSortedFunc(all, func(a, b store.Entry) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) }) {
			rt.Fatalf("dead window is out of order: %v", all)
		}
		// Which of them died first is up to each clock: all go, or none.
		if limit < len(all) {
			return len(all), nil
		}
		return s.TrimDead(rt.Context(), p.shard, all[len(all)-1], limit)
	})
}
