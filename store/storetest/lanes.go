package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/store"
)

func laneCases() []entry {
	return []entry{
		{"Traits/AreKept", traitsKept},
		{"Traits/AreToldWhenPendingAgain", traitsTold},
		{"Traits/GiveWayWithTheTask", traitsReplaced},
		{"Lanes/HavePendingTasksOnly", lanesPending},
		{"Lanes/OrderedByDueAndID", lanesOrder},
		{"Lanes/PagesThroughEverything", lanesPages},
		{"Lanes/AreNotMistakenForEachOther", lanesApart},
	}
}

// everyTrait returns traits with something in each field.
func everyTrait() *store.Traits {
	return &store.Traits{
		Priority: store.MaxPriority, FairnessWeight: store.MaxWeight, FairnessKey: strings.Repeat("f", store.MaxKey),
		RateKey: strings.Repeat("r", store.MaxKey), ConcurrencyKey: "c\x00ü", OrderingKey: strings.Repeat("o", store.MaxKey),
	}
}

// inLane returns a task of a lane.
func inLane(id string, due store.Millis, priority int, key string) *store.Task {
	t := task(id, due)
	t.Traits = &store.Traits{Priority: priority, FairnessKey: key}
	return t
}

// allLanes pages through the lanes of a shard.
func allLanes(ctx context.Context, s store.Store, shard store.Shard, limit int) (all []store.LaneHead, err error) {
	for after := (*store.Lane)(nil); ; {
		page, err := s.Lanes(ctx, shard, after, limit)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		after = &page[len(page)-1].Lane
	}
}

func (f *fixture) lanes() []store.LaneHead {
	f.Helper()
	lanes, err := allLanes(f.ctx, f.s, f.shard, 2)
	f.ok("lanes", err)
	slices.SortFunc(lanes, func(a, b store.LaneHead) int { return compareLanes(a.Lane, b.Lane) })
	return lanes
}

// lane returns the ids of the pending tasks of a lane.
func (f *fixture) lane(priority int, key string) (ids []string) {
	f.Helper()
	for _, e := range f.entries(store.WindowQuery{To: f.now().Add(1000 * long), Limit: 1000, Lane: &store.Lane{Priority: priority, Key: key}}) {
		ids = append(ids, e.ID)
		equal(f, "lane of the entry", e.Traits.Lane(), store.Lane{Priority: priority, Key: key})
	}
	return ids
}

func traitsKept(f *fixture) {
	with, without := task("with", f.now()-1), task("without", f.now()-1)
	with.Traits = everyTrait()
	f.add(with, without)
	check := func(when string) {
		f.Helper()
		sameTraits(f, "traits "+when, f.get("with").Traits, everyTrait())
		sameTraits(f, "no traits "+when, f.get("without").Traits, nil)
	}
	check("pending")
	for _, e := range f.entries(store.WindowQuery{To: f.now(), Limit: 10}) {
		want := everyTrait()
		if e.ID == "without" {
			want = nil
		}
		sameTraits(f, "traits in the window", e.Traits, want)
	}
	tokens := f.hold("with", "without")
	check("running")
	f.ack(long, store.OK, store.Ack{ID: "with", Token: tokens[0]}, store.Ack{ID: "without", Token: tokens[1]})
	check("done")
}

func traitsTold(f *fixture) {
	t := task("a", f.now()-1)
	t.Traits = everyTrait()
	f.add(t)
	_, moved, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Due: f.now() - 1}})
	f.ok("reschedule", err)
	sameTraits(f, "traits of the moved task", one(f, moved).Traits, everyTrait())

	token := f.hold("a")[0]
	sameTraits(f, "traits after a nack", f.nack(store.Nack{ID: "a", Token: token}).Traits, everyTrait())
	token = f.holdFor(time.Millisecond, "a")[0]
	waitUntil(f, f.s, f.get("a").Deadline)
	_, recovered, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: "a", Token: token}})
	f.ok("recover", err)
	sameTraits(f, "traits after a recovery", one(f, recovered).Traits, everyTrait())

	f.nack(store.Nack{ID: "a", Token: f.hold("a")[0], Reason: store.ReasonPermanent})
	equal(f, "no lane of dead tasks", len(f.lanes()), 0)
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	sameTraits(f, "traits after a requeue", one(f, requeued).Traits, everyTrait())
	equal(f, "lanes after a requeue", len(f.lanes()), 1)
}

// traitsReplaced has a finished task whose successor under the same id has no traits.
func traitsReplaced(f *fixture) {
	t := task("a", f.now()-1)
	t.Traits = everyTrait()
	f.add(t)
	f.ack(long, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	f.ready("a")
	sameTraits(f, "traits of the successor", f.get("a").Traits, nil)
	sameTraits(f, "traits in the window", one(f, f.entries(store.WindowQuery{To: f.now(), Limit: 10})).Traits, nil)
	equal(f, "lanes", len(f.lanes()), 0)
}

func lanesPending(f *fixture) {
	due := f.now() - 1000
	f.add(task("plain", due), inLane("a", due, 1, ""), inLane("b", due, 1, ""), inLane("c", due, 0, "k"), inLane("d", due, 1, ""))
	same(f, "lanes", f.lanes(), []store.LaneHead{{Lane: store.Lane{Key: "k"}, Due: due}, {Lane: store.Lane{Priority: 1}, Due: due}})
	same(f, "the first lane", f.lane(1, ""), []string{"a", "b", "d"})

	tokens := f.hold("a", "c", "plain")
	same(f, "lanes of the others", f.lanes(), []store.LaneHead{{Lane: store.Lane{Priority: 1}, Due: due}})
	f.nack(store.Nack{ID: "a", Token: tokens[0], Delay: long})
	same(f, "behind the others", f.lane(1, ""), []string{"b", "d", "a"})
	_, _, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "d", Due: due - 1}})
	f.ok("reschedule", err)
	same(f, "before the others", f.lane(1, ""), []string{"d", "b", "a"})
	_, _, err = f.s.Remove(f.ctx, f.shard, store.Removals("b", "d"))
	f.ok("remove", err)
	same(f, "what is left", f.lane(1, ""), []string{"a"})

	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	equal(f, "lanes of a dropped shard", len(f.lanes()), 0)
}

func lanesOrder(f *fixture) {
	now := f.now()
	f.add(inLane("b", now, 3, "k"), inLane("a", now, 3, "k"), inLane("z", now-1, 3, "k"), inLane("0", now+1, 3, "k"),
		inLane("old", 1, 3, "k"), inLane("far", now.Add(1000*long), 3, "k"))
	same(f, "the lane", f.lane(3, "k"), []string{"old", "z", "a", "b", "0", "far"})
	ids := func(w store.WindowQuery) (ids []string) {
		w.Lane = &store.Lane{Priority: 3, Key: "k"}
		for _, e := range f.entries(w) {
			ids = append(ids, e.ID)
		}
		return ids
	}
	same(f, "up to now", ids(store.WindowQuery{To: now, Limit: 10}), []string{"old", "z", "a", "b"})
	same(f, "the first two", ids(store.WindowQuery{To: now, Limit: 2}), []string{"old", "z"})
	same(f, "behind a position", ids(store.WindowQuery{After: store.Entry{Due: now, ID: "a"}, To: now + 1, Limit: 10}), []string{"b", "0"})
}

func lanesPages(f *fixture) {
	now, want := f.now(), map[store.Lane]int{}
	var batch []*store.Task
	for i := range 1500 {
		lane := store.Lane{Priority: rand.IntN(3), Key: fmt.Sprint("tenant ", rand.IntN(20))}
		want[lane]++
		batch = append(batch, inLane(fmt.Sprintf("task-%d", i), now-store.Millis(rand.IntN(5)), lane.Priority, lane.Key))
	}
	f.add(batch...)
	lanes := f.lanes()
	equal(f, "number of lanes", len(lanes), len(want))
	for _, l := range lanes {
		equal(f, fmt.Sprintf("tasks of lane %v", l.Lane), len(f.lane(l.Priority, l.Key)), want[l.Lane])
	}
}

// lanesApart has lanes that begin like others, and ids that look like parts of one.
func lanesApart(f *fixture) {
	due := f.now() - 1
	f.add(inLane("1", due, 1, "a"), inLane("2", due, 1, "ab"), inLane("3", due, 1, "a\x00"), inLane("4", due, 1, "\xff\xff"),
		inLane("5", due, 0, "a"), inLane("b\x00", due, 1, "a"))
	for _, c := range []struct {
		priority int
		key      string
		want     []string
	}{{1, "a", []string{"1", "b\x00"}}, {1, "ab", []string{"2"}}, {1, "a\x00", []string{"3"}}, {1, "\xff\xff", []string{"4"}}, {0, "a", []string{"5"}}, {2, "a", nil}} {
		same(f, fmt.Sprintf("lane %d %q", c.priority, c.key), f.lane(c.priority, c.key), c.want)
	}
	equal(f, "number of lanes", len(f.lanes()), 5)
}

func sameTraits(f *fixture, what string, got, want *store.Traits) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Fatalf("%s: got %+v, want %+v", what, got, want)
	}
}
