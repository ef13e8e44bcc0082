package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// RunCells runs the cases about cells on a store that keeps them, as Run does the others.
func RunCells(t *testing.T, open func(t *testing.T) store.Store) {
	for _, c := range cellCases() {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			cells, ok := s.(store.Cells)
			if !ok {
				t.Fatalf("%T keeps no cells", s)
			}
			c.run(&cellFixture{newFixture(t, s), cells})
		})
	}
}

// cellFixture is a store under test that keeps cells.
type cellFixture struct {
	*fixture
	cells store.Cells
}

type cellEntry struct {
	name string
	run  func(f *cellFixture)
}

func cellCases() []cellEntry {
	return []cellEntry{
		{"Cells/APutRaisesTheVersion", cellVersions},
		{"Cells/OfAnotherVersionAreStale", cellStale},
		{"Cells/ByID", cellsByID},
		{"Cells/OfShardsAreApart", cellsApart},
		{"Cells/AnswersAreBoundedInBytes", cellBytes},
		{"Wakes/InOrder", wakesInOrder},
		{"Wakes/FollowTheCell", wakesFollow},
		{"Wakes/Histogram", wakeHistogram},
		{"Lists/InOrder", listedInOrder},
		{"CellPage/ReturnsEachOfAKind", cellPages},
		{"Commit/IsAllOrNothing", commitAtomic},
		{"Commit/OfABatchComeOneAfterTheOther", commitsInOrder},
		{"Commit/OfAnOwnerNeedsItsFence", commitFenced},
		{"Commit/MakesTasksPending", commitAdds},
		{"Commit/EndsHolds", commitAcks},
		{"Commit/RemovesAndCancels", commitRemoves},
		{"Commit/InASealedShard", commitSealed},
		{"Commit/InADroppedShard", commitDropped},
		{"Commit/BigBatch", commitBig},
		{"Tells/EachEndOnce", tellsEnds},
		{"Tells/NothingElse", tellsNothing},
		{"Tells/AreKeptByEditsAndHops", tellsKept},
		{"Boxes/KeepTheOrder", boxesInOrder},
		{"Boxes/ATallyStopsASecondDelivery", boxTally},
	}
}

// commit makes one commit without a fence, which must have the expected status.
func (f *cellFixture) commit(want store.Status, c store.Commit) store.CommitResult {
	f.Helper()
	_, results, err := f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{c})
	f.ok("commit", err)
	f.statuses("commit", results, want)
	return results[0]
}

// put puts one cell.
func (f *cellFixture) put(want store.Status, version int64, c store.Cell) store.CommitResult {
	f.Helper()
	return f.commit(want, store.Commit{Puts: []store.Put{{Cell: c, If: version}}})
}

// cell returns one cell.
func (f *cellFixture) cell(id store.CellID) store.Cell {
	f.Helper()
	cells, err := f.cells.Cells(f.ctx, f.shard, []store.CellID{id})
	f.ok("cells", err)
	return one(f.fixture, cells)
}

// parcels returns what is in a box.
func (f *cellFixture) parcels(box store.Box) []store.Parcel {
	f.Helper()
	parcels, err := f.cells.Parcels(f.ctx, f.shard, box, 0, 1000)
	f.ok("parcels", err)
	return parcels
}

func (f *cellFixture) wakes(q store.WakeQuery) string {
	f.Helper()
	_, wakes, err := f.cells.Wakes(f.ctx, f.shard, q)
	f.ok("wakes", err)
	return fmt.Sprint(wakes)
}

// body is a cell with a body only.
func body(id store.CellID, text string) store.Cell { return store.Cell{ID: id, Body: []byte(text)} }

func checkCell(f *cellFixture, what string, got, want store.Cell) {
	f.Helper()
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		f.Fatalf("%s is %+v, want %+v", what, got, want)
	}
}

func cellVersions(f *cellFixture) {
	cell := store.Cell{ID: "snightly", Wake: 17, List: "paused", Listed: 5, Body: []byte("one")}
	f.put(store.OK, 0, cell)
	cell.Version = 1
	checkCell(f, "cell", f.cell("snightly"), cell)
	cell.Body, cell.Wake, cell.List = []byte("two"), 0, ""
	cell.Listed = 0
	f.put(store.OK, 1, cell)
	cell.Version = 2
	checkCell(f, "cell", f.cell("snightly"), cell)
	f.put(store.OK, store.AnyVersion, body("snightly", "three"))
	equal(f.fixture, "version", f.cell("snightly").Version, 3)
	f.put(store.OK, 3, store.Cell{ID: "snightly"})
	checkCell(f, "deleted cell", f.cell("snightly"), store.Cell{ID: "snightly"})
	f.put(store.OK, store.AnyVersion, store.Cell{ID: "snightly"})
	f.put(store.OK, 0, body("snightly", "four"))
	equal(f.fixture, "version of a new one", f.cell("snightly").Version, 1)
}

func cellStale(f *cellFixture) {
	f.put(store.OK, 0, body("sa", "one"))
	for _, version := range []int64{0, 2} {
		result := f.put(store.Stale, version, body("sa", "other"))
		checkCell(f, "the one in the way", result.Cell, store.Cell{ID: "sa", Version: 1, Body: []byte("one")})
	}
	result := f.put(store.Stale, 1, body("sb", "other"))
	checkCell(f, "the one in the way", result.Cell, store.Cell{ID: "sb"})
	result = f.put(store.Stale, 7, store.Cell{ID: "sa"})
	equal(f.fixture, "version in the way of a deletion", result.Cell.Version, 1)
}

func cellsByID(f *cellFixture) {
	ids := []store.CellID{"sa", "wa", "s" + store.CellID(strings.Repeat("k", store.MaxCellKey)), "s\x00:{}\xff"}
	for _, id := range ids {
		f.put(store.OK, 0, body(id, "of "+string(id)))
	}
	cells, err := f.cells.Cells(f.ctx, f.shard, append(ids, "sabsent"))
	f.ok("cells", err)
	equal(f.fixture, "number of cells", len(cells), len(ids)+1)
	for i, id := range ids {
		checkCell(f, "cell", cells[i], store.Cell{ID: id, Version: 1, Body: []byte("of " + string(id))})
	}
	checkCell(f, "absent cell", cells[len(ids)], store.Cell{ID: "sabsent"})
	cells, err = f.cells.Cells(f.ctx, f.shard, nil)
	f.ok("cells", err)
	equal(f.fixture, "number of cells", len(cells), 0)
}

func cellsApart(f *cellFixture) {
	f.put(store.OK, 0, body("sa", "one"))
	for _, other := range []store.Shard{{Topic: "mail", N: 1}, {Topic: "mails", N: 0}} {
		_, results, err := f.cells.Commit(f.ctx, other, nil, []store.Commit{{Puts: []store.Put{{Cell: body("sa", "other"), If: 0}}}})
		f.ok("commit", err)
		f.statuses("commit", results, store.OK)
	}
	equal(f.fixture, "body", string(f.cell("sa").Body), "one")
}

func cellBytes(f *cellFixture) {
	big := strings.Repeat("b", store.MaxCell)
	var ids []store.CellID
	for i := range 6 {
		id := store.CellID(fmt.Sprintf("sbig-%d", i))
		ids = append(ids, id)
		f.put(store.OK, 0, store.Cell{ID: id, List: "big", Listed: store.Millis(i), Body: []byte(big)})
		f.commit(store.OK, store.Commit{Send: []store.Parcel{{To: id, Body: []byte(big)}}})
	}
	cells, err := f.cells.Cells(f.ctx, f.shard, ids)
	f.ok("cells", err)
	equal(f.fixture, "number of cells in an answer", len(cells), 4)
	cells, err = f.cells.Listed(f.ctx, f.shard, "big", store.Wake{}, 100)
	f.ok("listed", err)
	equal(f.fixture, "number of listed cells in an answer", len(cells), 4)
	parcels, err := f.cells.Parcels(f.ctx, f.shard, store.InBox, 0, 100)
	f.ok("parcels", err)
	equal(f.fixture, "number of parcels in an answer", len(parcels), 4)
	seen := f.walk('s', 100)
	equal(f.fixture, "number of cells in pages", len(seen), 6)
}

func wakesInOrder(f *cellFixture) {
	for id, at := range map[store.CellID]store.Millis{"sc": 20, "sa": 20, "wb": 20, "sd": 10, "se": 30} {
		f.put(store.OK, 0, store.Cell{ID: id, Wake: at, Body: []byte("x")})
	}
	f.put(store.OK, 0, body("snever", "x"))
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{To: 20, Limit: 10}), "[{10 sd} {20 sa} {20 sc} {20 wb}]")
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{To: 30, Limit: 2}), "[{10 sd} {20 sa}]")
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{After: store.Wake{At: 20, ID: "sa"}, To: store.MaxDue, Limit: 10}), "[{20 sc} {20 wb} {30 se}]")
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{After: store.Wake{At: 20}, To: 25, Limit: 10}), "[{20 sa} {20 sc} {20 wb}]")
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{To: 9, Limit: 10}), "[]")
}

func wakesFollow(f *cellFixture) {
	f.put(store.OK, 0, store.Cell{ID: "sa", Wake: 20, List: "all", Listed: 1, Body: []byte("x")})
	f.put(store.OK, 1, store.Cell{ID: "sa", Wake: 50, List: "paused", Listed: 2, Body: []byte("x")})
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{To: 100, Limit: 10}), "[{50 sa}]")
	equal(f.fixture, "list that it left", len(f.listed("all", store.Wake{}, 10)), 0)
	equal(f.fixture, "list that it is in", len(f.listed("paused", store.Wake{}, 10)), 1)
	f.put(store.OK, 2, body("sa", "x"))
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{To: 100, Limit: 10}), "[]")
	f.put(store.OK, 3, store.Cell{ID: "sa", Wake: 70, List: "all", Body: []byte("x")})
	f.put(store.OK, 4, store.Cell{ID: "sa"})
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{To: 100, Limit: 10}), "[]")
	equal(f.fixture, "list of a deleted one", len(f.listed("all", store.Wake{}, 10)), 0)
}

func wakeHistogram(f *cellFixture) {
	for i, at := range []store.Millis{5, 10, 10, 19, 20, 1000} {
		f.put(store.OK, 0, store.Cell{ID: store.CellID(fmt.Sprint("s", i)), Wake: at, Body: []byte("x")})
	}
	_, counts, err := f.cells.WakeHistogram(f.ctx, f.shard, []store.Millis{10, 20, 30})
	f.ok("wake histogram", err)
	same(f.fixture, "counts", counts, []int64{1, 3, 1, 1})
}

func (f *cellFixture) listed(list string, after store.Wake, limit int) []store.CellID {
	f.Helper()
	cells, err := f.cells.Listed(f.ctx, f.shard, list, after, limit)
	f.ok("listed", err)
	var ids []store.CellID
	for _, c := range cells {
		ids = append(ids, c.ID)
	}
	return ids
}

func listedInOrder(f *cellFixture) {
	for id, at := range map[store.CellID]store.Millis{"sc": 20, "sa": 20, "sd": 9, "se": 100} {
		f.put(store.OK, 0, store.Cell{ID: id, List: "running", Listed: at, Body: []byte("x")})
	}
	f.put(store.OK, 0, store.Cell{ID: "so", List: "run", Listed: 1, Body: []byte("x")})
	same(f.fixture, "list", f.listed("running", store.Wake{}, 10), []store.CellID{"sd", "sa", "sc", "se"})
	same(f.fixture, "page", f.listed("running", store.Wake{At: 20, ID: "sa"}, 1), []store.CellID{"sc"})
	same(f.fixture, "other list", f.listed("run", store.Wake{}, 10), []store.CellID{"so"})
	same(f.fixture, "empty list", f.listed("r", store.Wake{}, 10), nil)
}

// walk pages through the cells of a kind.
func (f *cellFixture) walk(kind byte, limit int) map[store.CellID]bool {
	f.Helper()
	seen, cursor := map[store.CellID]bool{}, ""
	for {
		cells, next, err := f.cells.CellPage(f.ctx, f.shard, kind, cursor, limit)
		f.ok("cell page", err)
		for _, c := range cells {
			if c.ID.Kind() != kind || c.Version == 0 {
				f.Fatalf("page of %q has %+v", kind, c)
			}
			seen[c.ID] = true
		}
		if next == "" {
			return seen
		}
		cursor = next
	}
}

func cellPages(f *cellFixture) {
	var commits []store.Commit
	for i := range 300 {
		for _, kind := range []string{"s", "w", "S"} {
			commits = append(commits, store.Commit{Puts: []store.Put{{Cell: body(store.CellID(fmt.Sprintf("%s%03d", kind, i)), "x")}}})
		}
	}
	_, results, err := f.cells.Commit(f.ctx, f.shard, &f.fence, commits)
	f.ok("commit", err)
	f.statuses("commit", results, repeat(store.OK, len(commits))...)
	equal(f.fixture, "number of cells of a kind", len(f.walk('s', 7)), 300)
	equal(f.fixture, "number of cells of a kind", len(f.walk('w', 1000)), 300)
	equal(f.fixture, "number of cells of no kind", len(f.walk('x', 7)), 0)
	equal(f.fixture, "number of cells in the stats", f.stats().Cells, 900)
}

// commitAtomic makes commits of which one guard each fails: nothing of it happens.
func commitAtomic(f *cellFixture) {
	token := f.held("running")
	f.scheduled("pending")
	f.put(store.OK, 0, body("sa", "one"))
	seq := f.seq()
	guards := map[string]struct {
		status store.Status
		breaks func(c *store.Commit)
	}{
		"a cell of another version": {store.Stale, func(c *store.Commit) { c.Puts = append(c.Puts, store.Put{Cell: body("sb", "x"), If: 1}) }},
		"a hold that is not there":  {store.HoldLost, func(c *store.Commit) { c.Under = []store.Holder{{ID: "absent", Token: token}} }},
		"a hold of another token":   {store.HoldLost, func(c *store.Commit) { c.Under = []store.Holder{{ID: "running", Token: store.NewToken()}} }},
		"an ack of another token":   {store.HoldLost, func(c *store.Commit) { c.Acks = append(c.Acks, store.Ack{ID: "pending", Token: token}) }},
		"a task that must be pending": {store.WrongState, func(c *store.Commit) {
			c.Removes = append(c.Removes, store.Remove{ID: "running", Must: true})
		}},
		"a task that is gone":        {store.WrongState, func(c *store.Commit) { c.Removes = append(c.Removes, store.Remove{ID: "absent", Must: true}) }},
		"a task that lives":          {store.Conflict, func(c *store.Commit) { c.Adds = append(c.Adds, task("running", 5)) }},
		"the same task, which lives": {store.Conflict, func(c *store.Commit) { c.Adds = append(c.Adds, task("pending", 5)) }},
	}
	for name, g := range guards {
		c := store.Commit{
			Puts: []store.Put{{Cell: body("sa", "two"), If: 1}}, Acks: []store.Ack{{ID: "running", Token: token}}, Adds: tasks(5, "new"),
			Removes: []store.Remove{{ID: "pending", Must: true}}, Send: []store.Parcel{{To: "sa", Body: []byte("x")}, {To: "sa", Topic: "other", Body: []byte("x")}},
		}
		g.breaks(&c)
		good := store.Commit{Puts: []store.Put{{Cell: body("sgood", name), If: store.AnyVersion}}}
		_, results, err := f.cells.Commit(f.ctx, f.shard, nil, []store.Commit{good, c, good})
		f.ok("commit", err)
		f.statuses(name, results, store.OK, g.status, store.OK)
		equal(f.fixture, name+": body", string(f.cell("sa").Body), "one")
		f.states(store.StateRunning, "running")
		f.states(store.StateScheduled, "pending")
		f.states(store.StateUnknown, "new")
		equal(f.fixture, name+": in-box", len(f.parcels(store.InBox)), 0)
		equal(f.fixture, name+": out-box", len(f.parcels(store.OutBox)), 0)
	}
	equal(f.fixture, "seq", f.seq(), seq)
}

func commitsInOrder(f *cellFixture) {
	var commits []store.Commit
	for i := range int64(5) {
		commits = append(commits, store.Commit{Puts: []store.Put{{Cell: body("sa", fmt.Sprint(i)), If: i}}})
	}
	commits = append(commits, commits[2], store.Commit{Puts: []store.Put{{Cell: body("sa", "last"), If: 5}}})
	_, results, err := f.cells.Commit(f.ctx, f.shard, nil, commits)
	f.ok("commit", err)
	f.statuses("commit", results, store.OK, store.OK, store.OK, store.OK, store.OK, store.Stale, store.OK)
	equal(f.fixture, "version in the way", results[5].Cell.Version, 5)
	equal(f.fixture, "body", string(f.cell("sa").Body), "last")
}

func commitFenced(f *cellFixture) {
	c := []store.Commit{{Puts: []store.Put{{Cell: body("sa", "x"), If: store.AnyVersion}}}}
	_, _, err := f.cells.Commit(f.ctx, f.shard, &f.fence, c)
	f.ok("commit", err)
	old := f.fence
	f.fence = f.claim(f.shard, f.session)
	_, _, err = f.cells.Commit(f.ctx, f.shard, &old, c)
	f.refused("commit of an owner of the past", err, store.ErrFenced)
	equal(f.fixture, "version", f.cell("sa").Version, 1)
	_, _, err = f.cells.Commit(f.ctx, f.shard, nil, c)
	f.ok("commit without a fence", err)
}

func commitAdds(f *cellFixture) {
	f.done("done")
	f.dead("dead")
	seq := f.seq()
	f.commit(store.OK, store.Commit{Adds: tasks(f.now().Add(long), "new", "done", "dead")})
	f.states(store.StateScheduled, "new", "done", "dead")
	equal(f.fixture, "attempts of one that was done", f.get("done").Attempt, 0)
	equal(f.fixture, "seq", f.seq(), seq+1)
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: body("sa", "x")}}})
	equal(f.fixture, "seq", f.seq(), seq+1)
}

func commitAcks(f *cellFixture) {
	a, b, c := f.held("a"), f.held("b"), f.held("c")
	f.commit(store.OK, store.Commit{Acks: []store.Ack{{ID: "a", Token: a}}, Under: []store.Holder{{ID: "c", Token: c}}})
	f.commit(store.OK, store.Commit{Acks: []store.Ack{{ID: "b", Token: b, Result: []byte("done")}}, Retention: long})
	f.states(store.StateUnknown, "a")
	f.states(store.StateDone, "b")
	f.states(store.StateRunning, "c")
	equal(f.fixture, "task", f.commit(store.HoldLost, store.Commit{Acks: []store.Ack{{ID: "b", Token: b}}}).ID, "b")
}

func commitRemoves(f *cellFixture) {
	token := f.held("running")
	f.scheduled("pending", "other")
	f.commit(store.OK, store.Commit{Removes: []store.Remove{{ID: "pending", Must: true}, {ID: "other"}, {ID: "running"}, {ID: "absent"}}, Cancels: []string{"running", "absent"}})
	f.states(store.StateUnknown, "pending", "other")
	got := f.get("running")
	equal(f.fixture, "token", got.Token, token)
	equal(f.fixture, "cancelled", got.Cancelled, true)
}

func commitSealed(f *cellFixture) {
	f.put(store.OK, 0, body("sa", "one"))
	f.ok("seal", f.s.Seal(f.ctx, f.shard))
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: body("sa", "two"), If: 1}}, Adds: tasks(5, "a")})
	f.commit(store.Closed, store.Commit{Adds: tasks(5, "b")})
	f.commit(store.Closed, store.Commit{Puts: []store.Put{{Cell: body("snew", "x")}}})
	f.commit(store.Closed, store.Commit{Puts: []store.Put{{Cell: body("sa", "three"), If: 2}, {Cell: body("wnew", "x")}}})
	f.commit(store.Closed, store.Commit{Puts: []store.Put{{Cell: body("tnew", "x")}}, Adds: tasks(5, "b")})
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: body("tnew", "x")}}})
	f.commit(store.OK, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sa"}, If: 2}}})
	f.states(store.StateUnknown, "b")
}

func commitDropped(f *cellFixture) {
	f.put(store.OK, 0, store.Cell{ID: "sa", Wake: 5, List: "all", Body: []byte("x")})
	f.commit(store.OK, store.Commit{Send: []store.Parcel{{To: "sa", Body: []byte("x")}, {To: "sa", Topic: "other", Body: []byte("x")}}})
	f.ok("drop", f.s.DropShard(f.ctx, f.shard))
	equal(f.fixture, "version", f.cell("sa").Version, 0)
	equal(f.fixture, "wakes", f.wakes(store.WakeQuery{To: 100, Limit: 10}), "[]")
	equal(f.fixture, "list", len(f.listed("all", store.Wake{}, 10)), 0)
	equal(f.fixture, "in-box", len(f.parcels(store.InBox)), 0)
	equal(f.fixture, "out-box", len(f.parcels(store.OutBox)), 0)
	f.commit(store.OK, store.Commit{Send: []store.Parcel{{To: "sa", Body: []byte("x")}}})
	equal(f.fixture, "number of a parcel after that", f.parcels(store.InBox)[0].Number, 2)
}

func commitBig(f *cellFixture) {
	const n = 600
	commits := make([]store.Commit, n)
	for i := range commits {
		id := fmt.Sprintf("%04d", i)
		t := task(id, f.now().Add(long))
		t.Tells = "s" + store.CellID(id)
		commits[i] = store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: t.Tells, Wake: store.Millis(i + 1), Body: []byte(id)}}}, Adds: []*store.Task{t}}
	}
	_, results, err := f.cells.Commit(f.ctx, f.shard, &f.fence, commits)
	f.ok("commit", err)
	f.statuses("commit", results, repeat(store.OK, n)...)
	equal(f.fixture, "number of tasks", f.stats().Pending, n)
	_, results, err = f.cells.Commit(f.ctx, f.shard, &f.fence, commits)
	f.ok("commit", err)
	f.statuses("commit again", results, repeat(store.Stale, n)...)
}

// telling returns a task that tells a cell.
func telling(id string, due store.Millis) *store.Task {
	t := task(id, due)
	t.Tells = "srun"
	return t
}

// told takes what is in the in-box, and checks that it is one end of a task.
func (f *cellFixture) told(what, id string, kind store.ChangeKind) store.Ended {
	f.Helper()
	parcels := f.parcels(store.InBox)
	if len(parcels) != 1 || parcels[0].Ended == nil {
		f.Fatalf("%s leaves %+v, want one end of a task", what, parcels)
	}
	p := parcels[0]
	equal(f.fixture, what+" is told to", p.To, "srun")
	equal(f.fixture, what+" is about", p.Ended.ID, id)
	equal(f.fixture, what+" is", p.Ended.Kind, kind)
	f.about(what+" is at", p.At, f.now().Time())
	f.commit(store.OK, store.Commit{Take: p.Number})
	return *p.Ended
}

func (f *cellFixture) silent(what string) {
	f.Helper()
	if parcels := f.parcels(store.InBox); len(parcels) != 0 {
		f.Fatalf("%s leaves %+v, want nothing", what, parcels)
	}
}

// tellsEnds ends a task in every way there is.
func tellsEnds(f *cellFixture) {
	held := func(id string) store.Token {
		f.Helper()
		f.add(telling(id, f.now()-1000))
		return f.hold(id)[0]
	}
	token := held("acked")
	f.ack(0, store.OK, store.Ack{ID: "acked", Token: token, Result: []byte("42")})
	e := f.told("an ack", "acked", store.ChangeDone)
	equal(f.fixture, "result", string(e.Result), "42")
	equal(f.fixture, "attempt", e.Attempt, 1)
	equal(f.fixture, "worker", e.Worker, "worker-1")
	f.about("started", e.Started, f.now().Time())
	f.ack(0, store.NotFound, store.Ack{ID: "acked", Token: token})
	f.silent("an ack again")

	token = held("kept")
	f.ack(long, store.OK, store.Ack{ID: "kept", Token: token})
	f.told("an ack with a retention", "kept", store.ChangeDone)
	f.ack(long, store.Already, store.Ack{ID: "kept", Token: token})
	f.silent("an ack again")

	token = held("nacked")
	f.nack(store.Nack{ID: "nacked", Token: token, Reason: store.ReasonPermanent, Error: "no"})
	e = f.told("a nack for good", "nacked", store.ChangeDead)
	equal(f.fixture, "reason", e.Reason, store.ReasonPermanent)
	equal(f.fixture, "error", e.Error, "no")
	_, requeued, err := f.s.Requeue(f.ctx, f.shard, []string{"nacked", "nacked"})
	f.ok("requeue", err)
	f.statuses("requeue", requeued, store.OK, store.NotFound)
	f.told("a requeue", "nacked", store.ChangeRequeued)
	_, removed, err := f.s.Remove(f.ctx, f.shard, []string{"nacked", "nacked"})
	f.ok("remove", err)
	f.statuses("remove", removed, store.OK, store.NotFound)
	f.told("a removal", "nacked", store.ChangeDeleted)

	f.add(telling("lost", f.now()-1000))
	_, results := f.tryHold(holdsOf(time.Millisecond, "lost"), store.OK)
	waitUntil(f, f.s, results[0].Deadline+1)
	recover := []store.Nack{{ID: "lost", Token: f.get("lost").Token, Reason: store.ReasonHoldExpired}}
	for range 2 {
		_, _, err = f.s.Recover(f.ctx, f.shard, f.fence, recover)
		f.ok("recover", err)
	}
	f.told("a recovery for good", "lost", store.ChangeDead)

	expired := telling("expired", f.now()-1000)
	expired.Expires = f.now() - 500
	f.add(expired)
	f.tryHold(holdsOf(long, "expired", "expired"), store.Expired, store.WrongState)
	equal(f.fixture, "reason", f.told("an expiry", "expired", store.ChangeDead).Reason, store.ReasonExpired)

	f.add(telling("committed", f.now().Add(long)))
	f.commit(store.OK, store.Commit{Removes: []store.Remove{{ID: "committed"}}})
	f.told("a removal by a commit", "committed", store.ChangeDeleted)

	token = held("by commit")
	f.commit(store.OK, store.Commit{Acks: []store.Ack{{ID: "by commit", Token: token, Result: []byte("x")}}})
	f.told("an ack by a commit", "by commit", store.ChangeDone)

	first, second := telling("first", f.now().Add(long)), task("second", f.now().Add(long))
	first.Key = &store.Key{Text: "k"}
	second.Key = &store.Key{Text: "k", OnConflict: store.KeyReplace}
	_, added, err := f.s.AddKeyed(f.ctx, f.shard, []*store.Task{first, second})
	f.ok("add keyed", err)
	f.statuses("add keyed", added, store.Added, store.Replaced)
	f.told("a replacement by key", "first", store.ChangeDeleted)
	f.commit(store.OK, store.Commit{Removes: []store.Remove{{ID: "first", Must: true}}})
	f.silent("the end of a task that replaced another")
}

// tellsNothing does to a task what does not end it.
func tellsNothing(f *cellFixture) {
	f.add(telling("a", f.now()-1000))
	f.edit(store.OK, store.Edit{ID: "a", Due: f.now() - 5})
	token := f.hold("a")[0]
	_, _, err := f.s.Extend(f.ctx, f.shard, []store.Extend{{ID: "a", Token: token, Visibility: long}})
	f.ok("extend", err)
	_, _, err = f.s.Cancel(f.ctx, f.shard, []string{"a"})
	f.ok("cancel", err)
	f.nack(store.Nack{ID: "a", Token: store.NewToken(), Reason: store.ReasonPermanent})
	f.ack(0, store.Stale, store.Ack{ID: "a", Token: store.NewToken()})
	f.add(telling("b", f.now()-1000))
	f.nack(store.Nack{ID: "b", Token: f.hold("b")[0], Uncount: true})
	waitUntil(f, f.s, f.get("b").Due)
	f.nack(store.Nack{ID: "b", Token: f.hold("b")[0], Outcome: store.OutcomeFailed, Error: "again"})
	f.silent("what does not end a task")

	dead := telling("dead", f.now()-1000)
	f.add(dead)
	f.nack(store.Nack{ID: "dead", Token: f.hold("dead")[0], Reason: store.ReasonPermanent})
	f.told("a nack for good", "dead", store.ChangeDead)
	_, _, err = f.s.RemoveDead(f.ctx, f.shard, []string{"dead"})
	f.ok("remove dead", err)
	f.silent("the removal of a dead letter")

	f.add(telling("kept", f.now()-1000))
	f.ack(time.Millisecond, store.OK, store.Ack{ID: "kept", Token: f.hold("kept")[0]})
	f.told("an ack", "kept", store.ChangeDone)
	waitUntil(f, f.s, f.now()+5)
	_, err = f.s.Trim(f.ctx, f.shard, 10)
	f.ok("trim", err)
	f.silent("a trim")
	f.scheduled("tells nobody")
	f.commit(store.OK, store.Commit{Removes: []store.Remove{{ID: "tells nobody", Must: true}}})
	f.silent("the end of a task that tells nobody")
}

func tellsKept(f *cellFixture) {
	f.add(telling("a", f.now()-1000))
	equal(f.fixture, "cell that the task tells", f.get("a").Tells, "srun")
	f.edit(store.OK, store.Edit{ID: "a", Task: f.changed("a", "other")})
	token := f.hold("a")[0]
	f.nack(store.Nack{ID: "a", Token: token, Outcome: store.OutcomeFailed})
	equal(f.fixture, "cell that the task tells", f.get("a").Tells, "srun")
	waitUntil(f, f.s, f.get("a").Due)
	_, results := f.tryHold(holdsOf(long, "a"), store.OK)
	equal(f.fixture, "cell that the held task tells", results[0].Task.Tells, "srun")
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.get("a").Token})
	equal(f.fixture, "attempt", f.told("an ack", "a", store.ChangeDone).Attempt, 2)
	f.add(task("a", f.now().Add(long)))
	equal(f.fixture, "cell that a new task of the id tells", f.get("a").Tells, "")
}

func boxesInOrder(f *cellFixture) {
	for i := range 5 {
		f.commit(store.OK, store.Commit{Send: []store.Parcel{
			{To: "sa", Body: []byte(fmt.Sprint("in ", i))}, {To: "sb", Topic: "other", Body: []byte(fmt.Sprint("out ", i))}, {To: "sc", Body: []byte("more")},
		}})
	}
	in, out := f.parcels(store.InBox), f.parcels(store.OutBox)
	equal(f.fixture, "parcels in the in-box", len(in), 10)
	equal(f.fixture, "parcels in the out-box", len(out), 5)
	for i := range 5 {
		equal(f.fixture, "body", string(in[2*i].Body), fmt.Sprint("in ", i))
		equal(f.fixture, "cell", in[2*i+1].To, "sc")
		equal(f.fixture, "body", string(out[i].Body), fmt.Sprint("out ", i))
		equal(f.fixture, "topic", out[i].Topic, "other")
	}
	for i := 1; i < len(in); i++ {
		if in[i].Number <= in[i-1].Number {
			f.Fatalf("number %d follows on %d", in[i].Number, in[i-1].Number)
		}
	}
	stamp, _, err := f.cells.Wakes(f.ctx, f.shard, store.WakeQuery{Limit: 1})
	f.ok("wakes", err)
	equal(f.fixture, "last number of the stamp", stamp.In, in[9].Number)

	page, err := f.cells.Parcels(f.ctx, f.shard, store.InBox, in[3].Number, 2)
	f.ok("parcels", err)
	equal(f.fixture, "page", page[0].Number, in[4].Number)
	equal(f.fixture, "length of the page", len(page), 2)
	f.commit(store.OK, store.Commit{Take: in[6].Number, Drop: []int64{out[1].Number, out[3].Number}})
	equal(f.fixture, "first that is left", f.parcels(store.InBox)[0].Number, in[7].Number)
	left := f.parcels(store.OutBox)
	equal(f.fixture, "parcels that are left", len(left), 3)
	equal(f.fixture, "second that is left", left[1].Number, out[2].Number)
	f.commit(store.OK, store.Commit{Take: in[9].Number})
	equal(f.fixture, "parcels that are left", len(f.parcels(store.InBox)), 0)
	f.commit(store.OK, store.Commit{Send: []store.Parcel{{To: "sa", Body: []byte("x")}}})
	if next := f.parcels(store.InBox)[0].Number; next <= in[9].Number {
		f.Fatalf("number %d comes after %d", next, in[9].Number)
	}
	equal(f.fixture, "parcels in the stats", f.stats().Parcels, 4)
}

// boxTally delivers a parcel from another shard, twice: the second time its task is done
// and gone.
func boxTally(f *cellFixture) {
	deliver := store.Commit{Puts: []store.Put{{Cell: body("tother/3", "17"), If: 0}}, Adds: tasks(f.now()-1000, "a")}
	f.commit(store.OK, deliver)
	f.ack(0, store.OK, store.Ack{ID: "a", Token: f.hold("a")[0]})
	result := f.commit(store.Stale, deliver)
	equal(f.fixture, "the number that was taken", string(result.Cell.Body), "17")
	f.states(store.StateUnknown, "a")
}
