package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ddq-io/ddq/store"
)

func windowCases() []entry {
	return []entry{
		{"Window/OrderedByDueAndID", windowOrder},
		{"Window/ToIsIncluded", windowTo},
		{"Window/AfterIsAPosition", windowAfter},
		{"Window/PagesThroughEqualDueTimes", windowEqualDue},
		{"Window/PagesThroughEverything", windowPages},
		{"Window/PendingOnly", windowPending},
		{"Window/OrdersOddIDs", windowOdd},
	}
}

// entries asks for a window.
func (f *fixture) entries(w store.WindowQuery) []store.Entry {
	f.Helper()
	_, entries, err := f.s.Window(f.ctx, f.shard, w)
	f.ok("window", err)
	return entries
}

// pages walks through the whole window up to to.
func (f *fixture) pages(to store.Millis, limit int) []store.Entry {
	f.Helper()
	var all []store.Entry
	var after store.Entry
	for calls := 0; ; calls++ {
		f.endless(calls)
		page := f.entries(store.WindowQuery{After: after, To: to, Limit: limit})
		all = append(all, page...)
		if len(page) > limit {
			f.Fatalf("window returned %d entries under a limit of %d", len(page), limit)
		}
		if len(page) < limit {
			return all
		}
		after = page[len(page)-1]
	}
}

// addEntries adds a task for each entry, in random order, and returns the
// entries in order.
func (f *fixture) addEntries(entries ...store.Entry) []store.Entry {
	f.Helper()
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
	})
	random := rand.New(rand.NewPCG(1, 2))
	var batch []*store.Task
	for _, i := range random.Perm(len(entries)) {
		batch = append(batch, task(entries[i].ID, entries[i].Due))
	}
	f.add(batch...)
	return sorted
}

func windowOrder(f *fixture) {
	now := f.now()
	want := f.addEntries(
		store.Entry{Due: now, ID: "b"}, store.Entry{Due: now, ID: "a"}, store.Entry{Due: now, ID: "B"}, store.Entry{Due: now, ID: "a0"},
		store.Entry{Due: now - 1, ID: "z"}, store.Entry{Due: now + 1, ID: "0"}, store.Entry{Due: 1, ID: "old"},
		store.Entry{Due: 999, ID: "digits"}, store.Entry{Due: 1000, ID: "more-digits"}, store.Entry{Due: now.Add(87600 * long), ID: "far"},
	)
	far := want[len(want)-1].Due
	same(f, "window", f.entries(store.WindowQuery{To: far, Limit: 100}), want)
	same(f, "window of two", f.entries(store.WindowQuery{To: far, Limit: 2}), want[:2])
	same(f, "window page by page", f.pages(far, 1), want)
}

func windowTo(f *fixture) {
	now := f.now()
	want := f.addEntries(store.Entry{Due: now, ID: "a"}, store.Entry{Due: now + 1, ID: "b"}, store.Entry{Due: now + 2, ID: "c"})
	for i := range want {
		same(f, "window", f.entries(store.WindowQuery{To: want[i].Due, Limit: 10}), want[:i+1])
	}
	same(f, "window before all", f.entries(store.WindowQuery{To: now - 1, Limit: 10}), nil)
	same(f, "window that ends before it starts", f.entries(store.WindowQuery{After: want[2], To: now, Limit: 10}), nil)
}

func windowAfter(f *fixture) {
	now := f.now()
	want := f.addEntries(store.Entry{Due: now, ID: "b"}, store.Entry{Due: now, ID: "d"}, store.Entry{Due: now + 1, ID: "a"})
	for _, c := range []struct {
		after store.Entry
		from  int
	}{
		{store.Entry{}, 0},
		{store.Entry{Due: now - 1, ID: "zzz"}, 0},
		{store.Entry{Due: now}, 0}, // before every id
		{store.Entry{Due: now, ID: "a"}, 0},
		{store.Entry{Due: now, ID: "b"}, 1},
		{store.Entry{Due: now, ID: "b0"}, 1}, // not there itself
		{store.Entry{Due: now, ID: "d"}, 2},
		{store.Entry{Due: now, ID: "~"}, 2},
		{store.Entry{Due: now + 1}, 2},
		{store.Entry{Due: now + 1, ID: "a"}, 3},
		{store.Entry{Due: now + 2}, 3},
	} {
		got := f.entries(store.WindowQuery{After: c.after, To: now.Add(long), Limit: 10})
		same(f, fmt.Sprintf("window after %v", c.after), got, want[c.from:])
	}
}

func windowEqualDue(f *fixture) {
	due := f.now().Add(long)
	var entries []store.Entry
	for _, id := range numbered(1000) {
		entries = append(entries, store.Entry{Due: due, ID: id})
	}
	entries = append(entries, store.Entry{Due: due - 1, ID: "zz"}, store.Entry{Due: due + 1, ID: "aa"})
	want := f.addEntries(entries...)
	for _, limit := range []int{7, 100, 1000, 1002, 5000} {
		same(f, fmt.Sprintf("window in pages of %d", limit), f.pages(due+1, limit), want)
	}
}

// windowPages walks through a window in which due times come in runs, while
// tasks behind the position are held.
func windowPages(f *fixture) {
	now := f.now()
	var entries []store.Entry
	for i, id := range numbered(600) {
		entries = append(entries, store.Entry{Due: now - store.Millis(i%37), ID: id})
	}
	want := f.addEntries(entries...)
	var got []store.Entry
	var after store.Entry
	for calls := 0; ; calls++ {
		f.endless(calls)
		page := f.entries(store.WindowQuery{After: after, To: now, Limit: 50})
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		after = page[len(page)-1]
		f.hold(idsOf(page)...)
	}
	same(f, "window", got, want)
}

func windowPending(f *fixture) {
	f.everyState()
	same(f, "pending tasks", slices.Sorted(slices.Values(f.window())), []string{"ready", "retrying", "scheduled"})
}

// windowOdd checks that order and paging do not depend on how ids are stored.
func windowOdd(f *fixture) {
	due := f.now().Add(long)
	var entries []store.Entry
	for _, id := range oddIDs() {
		entries = append(entries, store.Entry{Due: due, ID: id})
	}
	want := f.addEntries(entries...)
	for _, limit := range []int{1, 3, 1000} {
		same(f, fmt.Sprintf("window in pages of %d", limit), f.pages(due, limit), want)
	}
}
