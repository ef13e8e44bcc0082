package storetest

import (
	"fmt"
	"math"
	"strings"
	"testing"

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
			f := newFixture(t, s)
			c.run(&cellFixture{f, cells, f.now()})
		})
	}
}

// cellFixture is a store under test that keeps cells.
type cellFixture struct {
	*fixture
	cells store.Cells
	since store.Millis // the store's clock when the case began, or an end was told last
}

type cellEntry struct {
	name string
	run  func(f *cellFixture)
}

func cellCases() []cellEntry {
	return []cellEntry{
		{"Cells/APutRaisesTheVersion", cellVersions},
		{"Cells/BeginAtTheirFirstVersion", cellFirst},
		{"Cells/OfAnotherVersionAreStale", cellStale},
		{"Cells/ByID", cellsByID},
		{"Cells/OfShardsAreApart", cellsApart},
		{"Cells/AnswersAreBoundedInBytes", cellBytes},
		{"Wakes/InOrder", wakesInOrder},
		{"Wakes/FollowTheCell", wakesFollow},
		{"Wakes/Histogram", wakeHistogram},
		{"Lists/InOrder", listedInOrder},
		{"CellPage/ReturnsEachOfAKind", cellPages},
		{"CellPage/EndsWithItsBytes", largeCellPages},
		{"Commit/IsAllOrNothing", commitAtomic},
		{"Commit/OfABatchComeOneAfterTheOther", commitsInOrder},
		{"Commit/OfAnOwnerNeedsItsFence", commitFenced},
		{"Commit/MakesTasksPending", commitAdds},
		{"Commit/EndsHolds", commitAcks},
		{"Commit/RemovesAndCancels", commitRemoves},
		{"Commit/RemovesDead", commitRemovesDead},
		{"Commit/InASealedShard", commitSealed},
		{"Commit/ReceivedInASealedShard", commitReceivedSealed},
		{"Commit/InADroppedShard", commitDropped},
		{"Commit/BigBatch", commitBig},
		{"Commit/SaysThatItIsMadeOnce", commitMade},
		{"Tells/EachEndOnce", tellsEnds},
		{"Tells/WhatTheAckSays", tellsSaid},
		{"Tells/WhatTheNackSays", tellsFailed},
		{"Tells/NothingElse", tellsNothing},
		{"Tells/AreKeptByEditsAndHops", tellsKept},
		{"Boxes/KeepTheOrder", boxesInOrder},
		{"Boxes/WithTheCellsThatAreTold", boxesTold},
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

// cellFirst deletes cells and makes them anew, in lives of their own.
func cellFirst(f *cellFixture) {
	highest, other := store.FirstVersion(math.MaxUint64), store.FirstVersion(7<<40)
	for _, id := range []store.CellID{"snightly", "Spart"} {
		put := func(want store.Status, ifVersion, first int64, text string) {
			c := store.Cell{ID: id, Wake: 17, List: "all", Listed: 5, Body: []byte(text)}
			result := f.commit(want, store.Commit{Puts: []store.Put{{Cell: c, If: ifVersion, First: first}}})
			if want == store.OK {
				c.Version = max(ifVersion+1, first)
				checkCell(f, "cell", f.cell(id), c)
				equal(f.fixture, "is due", f.wakes(store.WakeQuery{To: 17, Limit: 9}), fmt.Sprint([]store.Wake{{At: 17, ID: id}}))
			} else {
				equal(f.fixture, "version in the way", result.Cell.Version, f.cell(id).Version)
			}
		}
		put(store.OK, 0, highest, "one")
		put(store.Stale, 0, other, "two")
		put(store.OK, highest, other, "two")
		put(store.Stale, highest, highest, "three")
		put(store.OK, highest+1, 0, "three")
		f.put(store.OK, highest+2, store.Cell{ID: id})
		put(store.OK, store.AnyVersion, other, "four")
		put(store.Stale, highest+2, 0, "five")
		f.put(store.OK, other, store.Cell{ID: id})
		put(store.OK, 0, 0, "five")
		f.put(store.OK, 1, store.Cell{ID: id})
	}
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

// largeCellPages: a page has what fits into store.MaxBodies, and one cell in any case.
func largeCellPages(f *cellFixture) {
	const cells = 10
	large := strings.Repeat("x", store.MaxCell-store.MaxCellKey)
	for i := range cells {
		f.put(store.OK, 0, body(store.CellID(fmt.Sprint("s", i)), large))
	}
	seen, cursor := map[store.CellID]bool{}, ""
	for {
		page, next, err := f.cells.CellPage(f.ctx, f.shard, 's', cursor, 1000)
		f.ok("cell page", err)
		bytes := 0
		for _, c := range page {
			seen[c.ID], bytes = true, bytes+len(c.Body)
		}
		if bytes > store.MaxBodies+store.MaxCell {
			f.Errorf("a page has %d cells of %d bytes together", len(page), bytes)
		}
		if cursor = next; next == "" {
			break
		}
	}
	equal(f.fixture, "number of cells", len(seen), cells)
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
