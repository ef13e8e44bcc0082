package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
)

func logCases() []entry {
	return []entry{
		{"Log/TellsEachChangeOnce", logTells},
		{"Log/TellsWhatEndsAnAttempt", logTellsEnds},
		{"Log/TellsNoRepeats", logNoRepeats},
		{"Log/TellsNothingOfWhatFailed", logNothingFailed},
		{"Log/TellsKeyedTasks", logKeyed},
		{"Log/TellsIndexedAttributes", logAttributes},
		{"Log/IsReadInPages", logPages},
		{"Log/IsReadForManyShards", logManyShards},
		{"Log/HasRoomForSoMany", logMax},
		{"Log/ForgetsWhatIsOld", logOld},
		{"Log/EndsAndBeginsAnew", logEnds},
		{"Log/EndsWithTheShard", logDropped},
		{"Log/GoesOnInASealedShard", logSealed},
		{"Log/BeginsAmongOldTasks", logOldTasks},
		{"Log/IsNotOfThoseWhoDoNotWatch", logOff},
	}
}

// watch begins the log of the case's shard.
func (f *fixture) watch() {
	f.Helper()
	f.ok("watch", f.s.Watch(f.ctx, f.shard, store.Watching{Retention: long, Max: 100_000}))
}

// page reads the log of the case's shard behind a position.
func (f *fixture) page(after int64, limit int) store.LogPage {
	f.Helper()
	pages, err := f.s.Changes(f.ctx, []store.LogRead{{Shard: f.shard, After: after, Limit: limit}})
	f.ok("changes", err)
	return one(f, pages)
}

// told checks what the log says behind a position, and returns the next one.
func (f *fixture) told(after int64, want ...string) int64 {
	f.Helper()
	page := f.page(after, 1000)
	if page.Gap {
		f.Fatalf("changes behind %d are missing", after)
	}
	same(f, "changes", linesOf(page.Changes), want)
	for i, c := range page.Changes {
		equal(f, "position", c.Position, after+1+int64(i))
	}
	equal(f, "position of the last change", page.Last, after+int64(len(want)))
	equal(f, "next position", page.Next, page.Last)
	return page.Next
}

// linesOf writes what is told of changes: kind, id, and what else is not zero.
func linesOf(changes []store.Change) []string {
	lines := make([]string, len(changes))
	for i, c := range changes {
		line := fmt.Sprintf("%v %s", c.Kind, c.ID)
		for _, part := range []struct {
			what  string
			value any
			zero  bool
		}{
			{"attempt", c.Attempt, c.Attempt == 0},
			{"version", c.Version, c.Version == 0},
			{"reason", c.Reason, c.Reason == 0},
			{"outcome", c.Outcome, c.Outcome == 0},
			{"worker", c.Worker, c.Worker == ""},
			{"attributes", c.Attributes, len(c.Attributes) == 0},
		} {
			if !part.zero {
				line += fmt.Sprintf(" %s=%v", part.what, part.value)
			}
		}
		lines[i] = line
	}
	return lines
}

func logTells(f *fixture) {
	f.watch()
	due := f.now().Add(long)
	f.add(task("a", due))
	next := f.told(0, "enqueued a version=1")
	first := f.page(0, 1).Changes[0]
	equal(f, "due time", first.Due, due)
	equal(f, "state", first.State(), store.StateScheduled)
	now, err := f.s.Clock(f.ctx)
	f.ok("clock", err)
	if d := now.Sub(first.At); d < 0 || d > long {
		f.Fatalf("the change was at %v, and it is %v", first.At, now)
	}

	_, moved, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Due: f.now() - 1000}})
	f.ok("edit", err)
	f.statuses("edit", moved, store.OK)
	next = f.told(next, "updated a version=2")

	_, _ = f.tryHold([]store.Hold{{ID: "a", Token: store.NewToken(), Visibility: long, Worker: "w", Node: "n"}}, store.OK)
	next = f.told(next, "held a attempt=1 version=2 worker=w")

	_, cancelled, err := f.s.Cancel(f.ctx, f.shard, []string{"a"})
	f.ok("cancel", err)
	f.statuses("cancel", cancelled, store.OK)
	next = f.told(next, "cancel_requested a attempt=1 worker=w")

	f.nack(store.Nack{ID: "a", Token: f.get("a").Token, Outcome: store.OutcomeFailed})
	next = f.told(next, "dead a attempt=1 reason=8 outcome=5 worker=w")

	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"a"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK)
	next = f.told(next, "requeued a version=2")

	_, removed, err := f.s.Remove(f.ctx, f.shard, store.Removals("a"))
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK)
	next = f.told(next, "deleted a")

	_, results, err := f.s.HoldNew(f.ctx, f.shard, f.fence, tasks(f.now()-1000, "b"), []store.Hold{{ID: "b", Token: store.NewToken(), Visibility: long, Worker: "w", Node: "n"}})
	f.ok("hold new", err)
	f.statuses("hold new", results, store.Held)
	f.told(next, "enqueued b version=1", "held b attempt=1 version=1 worker=w")
	equal(f, "log has changes", f.stats().Logged, true)
}

func logTellsEnds(f *fixture) {
	f.watch()
	f.ready("ack", "done", "fail", "release", "dead")
	tokens := f.hold("ack", "done", "fail", "release", "dead")
	after := f.page(0, 0).Last
	equal(f, "changes so far", after, 10)
	f.ack(0, store.OK, store.Ack{ID: "ack", Token: tokens[0]})
	f.ack(long, store.OK, store.Ack{ID: "done", Token: tokens[1]})
	f.nack(store.Nack{ID: "fail", Token: tokens[2], Delay: long, Outcome: store.OutcomeFailed, Error: "no luck"})
	f.nack(store.Nack{ID: "release", Token: tokens[3], Uncount: true, Outcome: store.OutcomeReleased})
	f.nack(store.Nack{ID: "dead", Token: tokens[4], Reason: store.ReasonPermanent})
	after = f.told(after,
		"done ack attempt=1 outcome=1 worker=worker-1",
		"done done attempt=1 outcome=1 worker=worker-1",
		"retrying fail attempt=1 outcome=2 worker=worker-1",
		"released release outcome=3 worker=worker-1",
		"dead dead attempt=1 reason=2 worker=worker-1")
	changes := f.page(after-3, 2).Changes
	equal(f, "state of what failed", changes[0].State(), store.StateRetrying)
	equal(f, "due time of what failed", changes[0].Due, f.get("fail").Due)
	equal(f, "due time of what was released", changes[1].Due, f.get("release").Due)

	_, _, err := f.s.RemoveDead(f.ctx, f.shard, []string{"dead", "done"})
	f.ok("remove dead", err)
	after = f.told(after, "deleted dead attempt=1")

	short := f.holdFor(time.Millisecond, "release")[0]
	waitUntil(f, f.s, f.get("release").Deadline)
	_, recovered, err := f.s.Recover(f.ctx, f.shard, f.fence, []store.Nack{{ID: "release", Token: short, Outcome: store.OutcomeHoldExpired}})
	f.ok("recover", err)
	f.statuses("recover", recovered, store.OK)
	after = f.told(after, "held release attempt=1 version=1 worker=worker-1", "retrying release attempt=1 outcome=4 worker=worker-1")
	f.expired("late")
	f.told(after, "enqueued late version=1", "dead late reason=3")
	equal(f, "state of what expired", f.page(after+1, 1).Changes[0].State(), store.StateExpired)
}

func logNoRepeats(f *fixture) {
	f.watch()
	f.ready("a", "b", "c")
	holds := holdsOf(long, "a", "b")
	for range 2 {
		_, again, err := f.s.Hold(f.ctx, f.shard, f.fence, holds)
		f.ok("hold", err)
		f.statuses("hold", again, store.OK, store.OK)
	}
	_, added, err := f.s.Add(f.ctx, f.shard, tasks(f.now()-1000, "a", "c"))
	f.ok("add", err)
	f.statuses("add", added, store.Duplicate, store.Duplicate)
	_, added, err = f.s.HoldNew(f.ctx, f.shard, f.fence, tasks(f.now()-1000, "c"), holdsOf(long, "c"))
	f.ok("hold new", err)
	f.statuses("hold new", added, store.Duplicate)
	_, _, err = f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: "a", Token: holds[0].Token, Visibility: 2 * long}})
	f.ok("extend", err)
	for range 2 {
		_, _, err = f.s.Cancel(f.ctx, f.shard, []string{"b"})
		f.ok("cancel", err)
	}
	f.ack(long, store.OK, store.Ack{ID: "a", Token: holds[0].Token})
	f.ack(long, store.Already, store.Ack{ID: "a", Token: holds[0].Token})
	f.nack(store.Nack{ID: "b", Token: holds[1].Token})
	equal(f, "status of a nack again", f.nack(store.Nack{ID: "b", Token: holds[1].Token}).Status, store.WrongState)
	f.told(0,
		"enqueued a version=1", "enqueued b version=1", "enqueued c version=1",
		"held a attempt=1 version=1 worker=worker-1", "held b attempt=1 version=1 worker=worker-1",
		"cancel_requested b attempt=1 worker=worker-1",
		"done a attempt=1 outcome=1 worker=worker-1", "dead b attempt=1 reason=8 worker=worker-1")
}

func logNothingFailed(f *fixture) {
	f.watch()
	f.scheduled("a")
	next := f.told(0, "enqueued a version=1")
	_, held := f.tryHold(holdsOf(long, "a", "none"), store.NotDue, store.NotFound)
	equal(f, "number of answers", len(held), 2)
	_, _, err := f.s.Hold(f.ctx, f.shard, store.Fence{Epoch: f.fence.Epoch + 1}, holdsOf(long, "a"))
	f.refused("hold under another fence", err, store.ErrFenced)
	f.ack(0, store.WrongState, store.Ack{ID: "a", Token: store.NewToken()})
	f.nack(store.Nack{ID: "none", Token: store.NewToken()})
	_, edited, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", IfVersion: 7, Now: true}})
	f.ok("edit", err)
	f.statuses("edit", edited, store.Stale)
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	_, _, err = f.s.Add(f.ctx, f.shard, tasks(f.now(), "b"))
	f.refused("add to a sealed shard", err, store.ErrSealed)
	f.told(next)
}

func logKeyed(f *fixture) {
	f.watch()
	keyed := func(id string) *store.Task {
		t := task(id, f.now().Add(long))
		t.Key = &store.Key{Text: "k", OnConflict: store.KeyReplace}
		return t
	}
	for _, id := range []string{"a", "b", "b"} {
		_, _, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{keyed(id)})
		f.ok("add keyed", err)
	}
	f.told(0, "enqueued a version=1", "updated a version=2")
}

func logAttributes(f *fixture) {
	f.watch()
	with := func(id, value string) *store.Task {
		t := task(id, f.now()-1000)
		t.Attributes = []store.Attribute{{Key: "other", Value: "o"}, {Key: "tenant", Value: value}}
		t.Indexed = store.NewIndexSet("tenant")
		return t
	}
	bare := with("c", "")
	bare.Attributes = nil
	f.add(with("a", "acme"), with("b", ""), bare)
	_, results, err := f.s.HoldNew(f.ctx, f.shard, f.fence, []*store.Task{with("d", "new")}, holdsOf(long, "d"))
	f.ok("hold new", err)
	f.statuses("hold new", results, store.Held)
	next := f.told(0,
		"enqueued a version=1 attributes=[{tenant acme}]", "enqueued b version=1 attributes=[{tenant }]", "enqueued c version=1",
		"enqueued d version=1 attributes=[{tenant new}]", "held d attempt=1 version=1 worker=worker-1 attributes=[{tenant new}]")
	changed := with("a", "beta")
	changed.Fingerprint = f.get("a").Fingerprint
	_, edited, err := f.s.Edit(f.ctx, f.shard, []store.Edit{{ID: "a", Task: changed}})
	f.ok("edit", err)
	f.statuses("edit", edited, store.OK)
	tokens := append(f.hold("a"), f.hold("b")...)
	_, _, err = f.s.Cancel(f.ctx, f.shard, []string{"b"})
	f.ok("cancel", err)
	f.ack(0, store.OK, store.Ack{ID: "a", Token: tokens[0]})
	f.nack(store.Nack{ID: "b", Token: tokens[1]})
	_, _, err = f.s.RemoveDead(f.ctx, f.shard, []string{"b"})
	f.ok("remove dead", err)
	f.told(next,
		"updated a version=2 attributes=[{tenant beta}]",
		"held a attempt=1 version=2 worker=worker-1 attributes=[{tenant beta}]", "held b attempt=1 version=1 worker=worker-1 attributes=[{tenant }]",
		"cancel_requested b attempt=1 worker=worker-1 attributes=[{tenant }]",
		"done a attempt=1 outcome=1 worker=worker-1 attributes=[{tenant beta}]",
		"dead b attempt=1 reason=8 worker=worker-1 attributes=[{tenant }]", "deleted b attempt=1 attributes=[{tenant }]")
}

func logPages(f *fixture) {
	f.watch()
	ids := numbered(25)
	f.scheduled(ids[:20]...)
	for _, id := range ids[20:] {
		f.scheduled(id)
	}
	for _, limit := range []int{1, 3, 7, 100} {
		var read []string
		for page := (store.LogPage{}); ; {
			page = f.page(page.Next, limit)
			equal(f, "gap", page.Gap, false)
			if len(page.Changes) == 0 {
				equal(f, "next position at the end", page.Next, 25)
				break
			}
			if len(page.Changes) > limit {
				f.Fatalf("a page of %d has %d changes", limit, len(page.Changes))
			}
			for _, c := range page.Changes {
				read = append(read, c.ID)
				equal(f, "position", c.Position, int64(len(read)))
			}
			equal(f, "next position", page.Next, int64(len(read)))
		}
		same(f, fmt.Sprintf("ids in pages of %d", limit), read, ids)
	}
	page := f.page(10, 0)
	equal(f, "changes of a page of none", len(page.Changes), 0)
	equal(f, "next position of a page of none", page.Next, 10)
	equal(f, "position of the last change", page.Last, 25)
	equal(f, "gap behind a position that is not there yet", f.page(26, 10).Gap, true)
}

func logManyShards(f *fixture) {
	var reads []store.LogRead
	for n := range 5 {
		shard := store.Shard{Topic: "mail", N: n}
		f.ok("watch", f.s.Watch(f.ctx, shard, store.Watching{Retention: long, Max: 10}))
		_, _, err := f.s.Add(f.ctx, shard, tasks(f.now().Add(long), numbered(n)...))
		f.ok("add", err)
		reads = append(reads, store.LogRead{Shard: shard, After: int64(min(1, n)), Limit: 10})
	}
	reads = append(reads, store.LogRead{Shard: store.Shard{Topic: "never", N: 1}, After: store.FromOldest, Limit: 1})
	pages, err := f.s.Changes(f.ctx, reads)
	f.ok("changes", err)
	for n, page := range pages[:5] {
		equal(f, "is watched", page.Watched, true)
		equal(f, "number of changes", len(page.Changes), max(0, n-1))
		equal(f, "next position", page.Next, int64(n))
	}
	equal(f, "another shard is watched", pages[5].Watched, false)
	equal(f, "gap in another shard", pages[5].Gap, false)
}

func logMax(f *fixture) {
	const most = 40
	f.ok("watch", f.s.Watch(f.ctx, f.shard, store.Watching{Retention: long, Max: most}))
	ids := numbered(10 * most)
	for _, id := range ids {
		f.scheduled(id)
	}
	oldest := f.page(store.FromOldest, 10*most)
	if n := len(oldest.Changes); n < most || n > 2*most {
		f.Fatalf("%d changes are kept, want about %d", n, most)
	}
	equal(f, "latest change", oldest.Changes[len(oldest.Changes)-1].ID, ids[len(ids)-1])
	page := f.page(0, 1)
	equal(f, "gap behind what is forgotten", page.Gap, true)
	equal(f, "changes behind a gap", len(page.Changes), 0)
	equal(f, "next position behind a gap", page.Next, int64(len(ids)))
	equal(f, "gap before the oldest", f.page(oldest.Changes[0].Position-2, 1).Gap, true)
	equal(f, "gap behind the one before the oldest", f.page(oldest.Changes[0].Position-1, 1).Gap, false)
}

func logOld(f *fixture) {
	f.ok("watch", f.s.Watch(f.ctx, f.shard, store.Watching{Retention: short, Max: 1000}))
	f.scheduled("a", "b")
	f.scheduled("c")
	waitUntil(f, f.s, f.now().Add(2*short))
	trimmed := 0
	for {
		n, err := f.s.TrimLog(f.ctx, f.shard, 2)
		f.ok("trim log", err)
		if trimmed += n; n == 0 {
			break
		}
	}
	equal(f, "changes that were forgotten", trimmed, 3)
	equal(f, "log has changes", f.stats().Logged, false)
	equal(f, "gap", f.page(2, 10).Gap, true)
	equal(f, "gap behind the last one", f.page(3, 10).Gap, false)
	equal(f, "next position from the oldest", f.page(store.FromOldest, 10).Next, 3)
	f.ok("watch for longer", f.s.Watch(f.ctx, f.shard, store.Watching{Retention: long, Max: 1000}))
	f.scheduled("d")
	n, err := f.s.TrimLog(f.ctx, f.shard, 100)
	f.ok("trim log", err)
	equal(f, "young changes that were forgotten", n, 0)
	f.told(3, "enqueued d version=1")
}

func logEnds(f *fixture) {
	f.watch()
	f.scheduled("a")
	f.watch()
	next := f.told(0, "enqueued a version=1")
	for range 2 {
		f.ok("end", f.s.Watch(f.ctx, f.shard, store.Watching{}))
	}
	f.scheduled("b")
	page := f.page(next, 10)
	equal(f, "is watched", page.Watched, false)
	equal(f, "gap", page.Gap, true)
	equal(f, "log has changes", f.stats().Logged, false)
	f.watch()
	equal(f, "gap in the next log", f.page(next, 10).Gap, true)
	page = f.page(store.FromOldest, 10)
	equal(f, "gap from the oldest", page.Gap, false)
	f.scheduled("c")
	f.told(page.Next, "enqueued c version=1")
}

func logDropped(f *fixture) {
	f.watch()
	f.scheduled("a", "b")
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	page := f.page(1, 10)
	equal(f, "is watched", page.Watched, false)
	equal(f, "gap", page.Gap, true)
	f.scheduled("c")
	equal(f, "log has changes", f.stats().Logged, false)
	f.watch()
	f.scheduled("d")
	page = f.page(store.FromOldest, 10)
	same(f, "changes of the next log", linesOf(page.Changes), []string{"enqueued d version=1"})
	if page.Next < 3 {
		f.Fatalf("the next log begins anew: it ends at position %d", page.Next)
	}
}

func logSealed(f *fixture) {
	f.watch()
	f.ready("a")
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	f.told(0, "enqueued a version=1", "held a attempt=1 version=1 worker=worker-1", "done a attempt=1 outcome=1 worker=worker-1")
}

func logOldTasks(f *fixture) {
	f.ready("a")
	f.dead("b")
	f.watch()
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	f.told(0, "held a attempt=1 version=1 worker=worker-1", "done a attempt=1 outcome=1 worker=worker-1")
}

func logOff(f *fixture) {
	f.done("a")
	page := f.page(0, 10)
	equal(f, "is watched", page.Watched, false)
	equal(f, "changes", len(page.Changes), 0)
	equal(f, "position", page.Last, 0)
	n, err := f.s.TrimLog(f.ctx, f.shard, 10)
	f.ok("trim log", err)
	equal(f, "changes that were forgotten", n, 0)
	equal(f, "log has changes", f.stats().Logged, false)
}

// watch begins the log, and seldom ends it.
func (p *pair) watch(rt *rapid.T) {
	w := store.Watching{Retention: long, Max: 1_000_000}
	if !often(rt, "watched") {
		w = store.Watching{}
	}
	p.both(rt, "watch", func(s *side) (any, error) { return nil, s.Watch(rt.Context(), p.shard, w) })
}

// checkLog compares what the logs tell of each task, and that with the task itself.
func (p *pair) checkLog(rt *rapid.T) {
	limit := rapid.IntRange(1, 50).Draw(rt, "log limit")
	p.both(rt, "changes", func(s *side) (any, error) {
		told := make(map[string][]string)
		last := make(map[string]store.State)
		for after := int64(store.FromOldest); ; {
			pages, err := s.Changes(rt.Context(), []store.LogRead{{Shard: p.shard, After: after, Limit: limit}})
			if err != nil {
				return nil, err
			}
			for i, c := range pages[0].Changes {
				if want := pages[0].Next - int64(len(pages[0].Changes)-1-i); c.Position != want {
					rt.Fatalf("change at position %d, want %d", c.Position, want)
				}
				told[c.ID] = append(told[c.ID], fmt.Sprint(linesOf([]store.Change{c}), " due ", p.round(c.Due)))
				last[c.ID] = c.State()
			}
			if after = pages[0].Next; len(pages[0].Changes) == 0 {
				p.agree(rt, s, last)
				pages[0].Changes = nil
				return []any{told, pages[0]}, nil
			}
		}
	})
}

// agree compares the states that were told last with those of the tasks.
func (p *pair) agree(rt *rapid.T, s *side, last map[string]store.State) {
	for id, told := range last {
		_, got, err := s.Get(rt.Context(), p.shard, []string{id})
		if err != nil {
			rt.Fatalf("get: %v", err)
		}
		state := got[0].State
		kept := []store.State{store.StateDone, store.StateDead, store.StateExpired} // for a while
		if state == told || state.Pending() && told.Pending() || state == store.StateUnknown && slices.Contains(kept, told) {
			continue
		}
		rt.Fatalf("%s is %v, and the log says %v", strings.ToValidUTF8(id, "?"), state, told)
	}
}
