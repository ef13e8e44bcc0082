package agenda

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

// A lane that could not be read when nothing of it was in memory has no task that could
// go and have it read again: the next look does.
func TestLaneWithoutTasksIsLookedAt(t *testing.T) {
	s := lanes{Wheel: 100, Ready: 100}
	l := s.Open(laneKey{Lane: store.Lane{Priority: 1}}, &window{})
	l.window.Full = true
	if got := s.TakeStarving(); len(got) != 0 {
		t.Fatalf("%d lanes are to be read already", len(got))
	}
	s.Look()
	s.Look()
	if got := s.TakeStarving(); len(got) != 1 || got[0] != l {
		t.Errorf("%d lanes are to be read, want the one", len(got))
	}
}

// keyed is a store and its shard, in which tasks of some keys may not go.
type keyed struct {
	*Shard
	t       *rapid.T
	wheel   sceneWheel
	now     store.Millis
	pending []store.Entry // as the store has them, in order
	parked  map[string]bool
	ready   []store.Entry
	pages   []func() // being read
	made    int      // tasks
}

func newKeyed(t *rapid.T) *keyed {
	c := Config{Horizon: time.Duration(rapid.SampledFrom([]int{100, 100_000}).Draw(t, "horizon")) * time.Millisecond, Wheel: rapid.IntRange(50, 100).Draw(t, "wheel"), Ready: rapid.IntRange(32, 64).Draw(t, "ready"), Page: rapid.IntRange(3, 12).Draw(t, "page"), Spare: 10 * time.Millisecond}
	k := &keyed{t: t, now: 1000, parked: make(map[string]bool)}
	k.wheel = sceneWheel{due: make(map[string]store.Millis), exact: make(map[string]bool), scene: &shardScene{}}
	k.Shard = NewShard(c, &k.wheel)
	k.LimitKeys(true, true)
	k.Own()
	k.Reread()
	k.Load(k.now)
	k.settle()
	return k
}

func byDue(a, b store.Entry) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), strings.Compare(a.ID, b.ID))
}

// page is what the store answers.
func (k *keyed) page(q store.WindowQuery) (page []store.Entry, more bool) {
	for _, e := range k.pending {
		behind := q.After.ID == "" && e.Due >= q.After.Due || q.After.ID != "" && byDue(q.After, e) < 0
		if behind && e.Due <= q.To && len(page) < q.Limit && (q.Lane == nil || *q.Lane == e.Traits.Lane()) {
			page = append(page, e)
		}
	}
	return page, len(page) == q.Limit
}

// settle ends a step. A page has what is there when it is asked for, and comes later.
func (k *keyed) settle() {
	k.Settle(k.now)
	k.ready = append(k.ready, k.TakeReady()...)
	e := k.Effects()
	if e.Load != nil {
		page, more := k.page(*e.Load)
		k.pages = append(k.pages, func() { k.Loaded(k.now, page, more) })
	}
	for _, l := range e.LoadLanes {
		page, more := k.page(l.Query)
		k.pages = append(k.pages, func() { k.LaneLoaded(k.now, l.Lane, page, more) })
	}
	if e.ScanLanes {
		var heads []store.LaneHead
		for _, e := range k.pending {
			if lane := e.Traits.Lane(); lane != (store.Lane{}) && !slices.ContainsFunc(heads, func(h store.LaneHead) bool { return h.Lane == lane }) {
				heads = append(heads, store.LaneHead{Lane: lane, Due: e.Due})
			}
		}
		k.pages = append(k.pages, func() { k.LanesFound(k.now, heads) })
	}
	e.Reset()
	if n := k.load().ready; n > k.lanes.Ready {
		k.t.Fatalf("%d tasks are ready of a budget of %d", n, k.lanes.Ready)
	}
}

func (k *keyed) answer(i int) {
	page := k.pages[i]
	k.pages = slices.Delete(k.pages, i, i+1)
	page()
	k.settle()
}

// take has the ready tasks go that may, as far as there are workers.
func (k *keyed) take(most int) (took int) {
	k.ready = slices.DeleteFunc(k.ready, func(e store.Entry) bool {
		if took == most || k.parked[e.Traits.RateKey] {
			return false
		}
		took++
		k.Left(e.ID)
		k.pending = slices.DeleteFunc(k.pending, func(p store.Entry) bool { return p.ID == e.ID })
		return true
	})
	k.settle()
	return took
}

func (k *keyed) add(n int, key string, priority int, due store.Millis) {
	for range n {
		k.made++
		e := store.Entry{ID: fmt.Sprint(key, k.made), Due: due, Traits: &store.Traits{RateKey: key, Priority: priority}}
		k.pending = append(k.pending, e)
		slices.SortFunc(k.pending, byDue)
		k.Pending(k.now, e)
		k.settle()
	}
}

// rest has everything come about that is under way, and time go on, until nothing goes any more.
func (k *keyed) rest() {
	for idle := 0; idle < 5; idle++ {
		k.now += 20
		k.Due(k.now, k.wheel.fire(k.now), false)
		k.Refresh(k.now)
		k.ScanBehind()
		k.settle()
		for pages := 0; len(k.pages) > 0 || k.take(1000) > 0; pages++ {
			if pages > 10_000 {
				k.t.Fatal("the store is read without end")
			}
			if len(k.pages) > 0 {
				k.answer(0)
			}
			if k.take(1000) > 0 {
				idle = 0
			}
		}
	}
}

// A key whose tasks may not go keeps those of no other key waiting, however many it has; and
// when it may go, all of its tasks do.
func TestParkedKeysAreInNobodysWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := newKeyed(t)
		k.wheel.scene.Shard = k.Shard
		keys := []string{"a", "b", "c", "", "d"}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				k.add(rapid.IntRange(1, 40).Draw(t, "tasks"), rapid.SampledFrom(keys).Draw(t, "key"), rapid.IntRange(0, 1).Draw(t, "priority"), k.now+store.Millis(rapid.OneOf(rapid.IntRange(-20, 120), rapid.IntRange(0, 50_000)).Draw(t, "due")))
			},
			"page": func(t *rapid.T) {
				if len(k.pages) > 0 {
					k.answer(rapid.IntRange(0, len(k.pages)-1).Draw(t, "page"))
				}
			},
			"take": func(t *rapid.T) { k.take(rapid.IntRange(1, 20).Draw(t, "room")) },
			"park": func(t *rapid.T) {
				key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
				if k.parked[key] || len(k.parked) == 2 {
					delete(k.parked, key)
				} else {
					k.parked[key] = true
				}
			},
			"time": func(t *rapid.T) {
				k.now += store.Millis(rapid.IntRange(1, 50).Draw(t, "ms"))
				k.Due(k.now, k.wheel.fire(k.now), false)
				k.settle()
			},
			"reread": func(t *rapid.T) {
				k.Reread()
				k.Load(k.now)
				k.settle()
			},
		})
		k.now += 20 //0
		k.rest()
		for _, e := range k.pending {
			if !k.parked[e.Traits.RateKey] && e.Due <= k.now-20 {
				t.Fatalf("%s of key %q waits, though only %v may not go; %d tasks are ready", e.ID, e.Traits.RateKey, k.parked, len(k.ready))
			}
		}
		clear(k.parked)
		k.now += 60_000
		if k.rest(); len(k.pending) > 0 {
			t.Fatalf("%d tasks never go", len(k.pending))
		}
	})
}
