package redisstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore"
	"github.com/ddq-io/ddq/store/redisstore/redistest"
)

// put is a commit of one cell of a version.
func put(version int64, c store.Cell) store.Commit {
	return store.Commit{Puts: []store.Put{{Cell: c, If: version}}}
}

// commit makes one commit, which must have the expected status.
func (s shardOf) commit(t *testing.T, want store.Status, c store.Commit) store.CommitResult {
	t.Helper()
	_, results, err := s.Commit(t.Context(), s.shard, nil, []store.Commit{c})
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Status != want {
		t.Fatalf("commit is %v, want %v", results[0].Status, want)
	}
	return results[0]
}

// TestLostCommitIsStaleAgain loses the answer to a commit: the same again finds the cell as
// that one left it, and makes no task and no parcel twice.
func TestLostCommitIsStaleAgain(t *testing.T) {
	server := redistest.Start(t)
	p := startProxy(t, server)
	s := claim(t, open(t, server.URL()))
	s.commit(t, store.OK, put(0, listedCell("sa", "one")))
	far := shardOf{open(t, "redis://"+p.listener.Addr().String()), s.shard, s.fence, s.session}
	next := put(1, listedCell("sa", "two"))
	next.Adds = newTasks(1, 1)
	next.Adds[0].Tells = "sa"
	next.Send = []store.Parcel{{To: "sb", Body: []byte("x")}, {To: "sb", Topic: "other", Body: []byte("x")}}
	p.lossy.Store(true)
	_, _, err := far.Commit(t.Context(), s.shard, &s.fence, []store.Commit{next})
	if !errors.Is(err, store.ErrUnknown) {
		t.Fatalf("error is %v, want %v", err, store.ErrUnknown)
	}
	p.lossy.Store(false)
	once := digest(t, server)
	eventually(t, "commit again", func() error {
		_, results, err := far.Commit(t.Context(), s.shard, &s.fence, []store.Commit{next})
		if err == nil && (results[0].Status != store.Stale || results[0].Cell.Version != 2 || string(results[0].Cell.Body) != "two") {
			t.Errorf("got %+v", results[0])
		}
		return err
	})
	if digest(t, server) != once {
		t.Error("the commit was made twice")
	}
}

// TestFullServerCarriesOn fills a server up: commits that bring work are refused, all others
// of the call with them, and those that carry on go through.
func TestFullServerCarriesOn(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	tasks := newTasks(2000, 1)
	for _, task := range tasks {
		task.Tells = "sa"
	}
	s.commit(t, store.OK, put(0, listedCell("sa", "one")))
	if _, _, err := s.Add(t.Context(), s.shard, tasks); err != nil {
		t.Fatal(err)
	}
	server.Do(t, "CONFIG", "SET", "maxmemory", "1mb")
	before := digest(t, server)
	made := put(1, listedCell("sa", "two"))
	made.Adds = newTasks(1, 1)
	for name, commits := range map[string][]store.Commit{
		"a new cell":                  {put(0, listedCell("sb", "one"))},
		"a task":                      {made},
		"work beside what carries on": {put(1, listedCell("sa", "two")), put(0, listedCell("sb", "one"))},
	} {
		if _, _, err := s.Commit(t.Context(), s.shard, &s.fence, commits); !errors.Is(err, store.ErrFull) {
			t.Errorf("%s: %v, want %v", name, err, store.ErrFull)
		}
	}
	if digest(t, server) != before {
		t.Error("a refused call changed something")
	}
	holds, acks := holdsFor(tasks)
	if _, _, err := s.Hold(t.Context(), s.shard, s.fence, holds); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Ack(t.Context(), s.shard, acks, 0); err != nil {
		t.Fatal(err)
	}
	page, err := s.Parcels(t.Context(), s.shard, store.InBox, 0, len(tasks))
	if err != nil || len(page) != len(tasks) {
		t.Fatalf("%d parcels, %v", len(page), err)
	}
	made.Take = page[len(page)-1].Number
	s.commit(t, store.OK, made)
}

// TestPagesAreBoundedWithinAStep: where Redis keeps a hash as a list it gives all of that in one
// step, as it gives a slot. Pages have their bytes all the same, and each cell is in one of them.
func TestPagesAreBoundedWithinAStep(t *testing.T) {
	server := redistest.Start(t)
	server.Do(t, "CONFIG", "SET", "hash-max-listpack-value", store.MaxCell, "hash-max-listpack-entries", 1000)
	s := claim(t, open(t, server.URL()))
	const cells = 60
	body := bytes.Repeat([]byte("x"), store.MaxCell/4)
	for i := range cells {
		s.commit(t, store.OK, put(0, store.Cell{ID: store.CellID(fmt.Sprint("s", i)), Body: body}))
	}
	var seen []store.CellID
	for cursor, pages := "", 0; ; pages++ {
		page, next, err := s.CellPage(t.Context(), s.shard, 's', cursor, 1000)
		if err != nil || pages > cells {
			t.Fatalf("page %d: %v", pages, err)
		}
		if len(page)*len(body) > store.MaxBodies {
			t.Errorf("a page has %d cells", len(page))
		}
		for _, c := range page {
			seen = append(seen, c.ID)
		}
		if cursor = next; next == "" {
			break
		}
	}
	slices.Sort(seen)
	if all := len(slices.Compact(seen)); all != cells || len(seen) != cells {
		t.Errorf("%d cells, %d of them once", len(seen), all)
	}
}

// TestNodesOfBeforeKeepOff sees that only a shard with cells, or tasks that tell one, is of
// the schema that nodes of before do not claim, and stays so.
func TestNodesOfBeforeKeepOff(t *testing.T) {
	telling := newTasks(1, 1)
	telling[0].Tells = "sa"
	keyed := newTasks(1, 1)
	keyed[0].Tells, keyed[0].Key = "sa", &store.Key{Text: "k"}
	for name, c := range map[string]struct {
		do   func(s shardOf) error
		want string
	}{
		"tasks": {func(s shardOf) error { _, _, err := s.Add(t.Context(), s.shard, newTasks(1, 1)); return err }, "1"},
		"a cell": {func(s shardOf) error {
			_, _, err := s.Commit(t.Context(), s.shard, nil, []store.Commit{put(0, listedCell("sa", "one"))})
			return err
		}, "2"},
		"a task that tells": {func(s shardOf) error { _, _, err := s.Add(t.Context(), s.shard, telling); return err }, "2"},
		"a held task that tells": {func(s shardOf) error {
			holds, _ := holdsFor(telling)
			_, _, err := s.HoldNew(t.Context(), s.shard, s.fence, telling, holds)
			return err
		}, "2"},
		"a journal":                    {func(s shardOf) error { begun(t, s, "a"); return nil }, "2"},
		"a task with a key that tells": {func(s shardOf) error { _, _, err := s.AddKeyed(t.Context(), s.shard, keyed); return err }, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := claim(t, open(t, server.URL()))
			if err := c.do(s); err != nil {
				t.Fatal(err)
			}
			claim(t, s.Store)
			if got := server.Do(t, "HGET", "ddq:{mail:0}:owner", "schema"); got != c.want {
				t.Errorf("schema is %v, want %v", got, c.want)
			}
		})
	}
}

// TestSweepRepairsCells breaks what points to cells, and what tasks tell.
func TestSweepRepairsCells(t *testing.T) {
	server := redistest.Start(t)
	const prefix = "ddq:{mail:0}:"
	later := store.Millis(time.Now().Add(time.Hour).UnixMilli())
	for name, c := range map[string]struct {
		damage   []any
		repaired int
		told     string
	}{
		"a wake gone":              {[]any{"DEL", prefix + "wakes"}, 2, ""},
		"a wake at another time":   {[]any{"ZADD", prefix + "wakes", 99, "sa"}, 1, ""},
		"a wake of no cell":        {[]any{"ZADD", prefix + "wakes", 5, "sghost"}, 1, ""},
		"a wake of one that never": {[]any{"ZADD", prefix + "wakes", 5, "snever"}, 1, ""},
		"lists gone":               {[]any{"DEL", prefix + "lists"}, 3, ""},
		"another list of a cell":   {[]any{"ZADD", prefix + "lists", 0, "\x05other\x80\x00\x00\x00\x00\x00\x00\x05sa"}, 1, ""},
		"nonsense in lists":        {[]any{"ZADD", prefix + "lists", 0, "\xff"}, 1, ""},
		"a cell of a task gone":    {[]any{"HSET", prefix + "tells", redisstore.Stored("ghost"), "sa"}, 1, "ghost deleted"},
		"a record of a task gone":  {[]any{"HDEL", prefix + "data", redisstore.Stored("task")}, 1, "task dead"},
		"a record that is corrupt and in no index": {[]any{"EVAL", "redis.call('HSET', KEYS[1], ARGV[1], 'x') redis.call('ZREM', KEYS[2], ARGV[1])", 2, prefix + "data", prefix + "tasks", redisstore.Stored("task")},
			1, "task dead"},
	} {
		t.Run(name, func(t *testing.T) {
			server.Do(t, "FLUSHALL")
			s := claim(t, open(t, server.URL()))
			s.commit(t, store.OK, store.Commit{Puts: []store.Put{
				{Cell: listedCell("sa", "x")}, {Cell: listedCell("sb", "x")}, {Cell: store.Cell{ID: "snever", Body: []byte("x")}},
				{Cell: store.Cell{ID: "Spart", List: "parts", Body: []byte("x")}},
			}, Adds: []*store.Task{{ID: "task", Due: later, MaxRetries: -1, Tells: "sa"}}})
			server.Do(t, c.damage...)
			if got := sweepWhole(t, s); got != c.repaired {
				t.Errorf("%d repaired, want %d", got, c.repaired)
			}
			_, wakes, err := s.Wakes(t.Context(), s.shard, store.WakeQuery{To: store.MaxDue, Limit: 10})
			if got := fmt.Sprint(wakes); err != nil || got != "[{17 sa} {17 sb}]" {
				t.Errorf("wakes are %s, %v", got, err)
			}
			for list, want := range map[string]string{"all": "sa sb", "parts": "Spart", "other": ""} {
				cells, err := s.Listed(t.Context(), s.shard, list, store.Wake{}, 10)
				var ids []string
				for _, c := range cells {
					ids = append(ids, string(c.ID))
				}
				if got := strings.Join(ids, " "); err != nil || got != want {
					t.Errorf("list %s is %q, %v, want %q", list, got, err, want)
				}
			}
			parcels, err := s.Parcels(t.Context(), s.shard, store.InBox, 0, 10)
			told := ""
			for _, p := range parcels {
				told += fmt.Sprint(p.Ended.ID, " ", p.Ended.Kind)
			}
			if err != nil || told != c.told {
				t.Errorf("told is %q, %v, want %q", told, err, c.told)
			}
			if again := sweepWhole(t, s); again != 0 {
				t.Errorf("%d repaired in the second walk", again)
			}
		})
	}
}

// TestListedGoesOnBehindOrphans: entries of a list whose cells are gone, or elsewhere in a list, fill whole pages.
func TestListedGoesOnBehindOrphans(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	moved := listedCell("sz", "x")
	moved.Listed = 99
	s.commit(t, store.OK, store.Commit{Puts: []store.Put{{Cell: listedCell("sa", "x")}, {Cell: moved}}})
	orphans := []any{"ZADD", "ddq:{mail:0}:lists"}
	for i := range 2500 { // more than one answer has
		orphans = append(orphans, 0, fmt.Sprintf("\x03all\x80\x00\x00\x00\x00\x00\x00\x01sghost%d", i))
	}
	server.Do(t, append(orphans, 0, "\x03all\x80\x00\x00\x00\x00\x00\x00\x02sz")...)
	for _, limit := range []int{1, 2, 5000} {
		var ids []string
		for after := (store.Wake{}); ; {
			page, err := s.Listed(t.Context(), s.shard, "all", after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, c := range page {
				ids, after = append(ids, string(c.ID)), store.Wake{At: c.Listed, ID: c.ID}
			}
		}
		if got := strings.Join(ids, " "); got != "sa sz" {
			t.Errorf("%d at a time the list is %q", limit, got)
		}
	}
}

// TestSweepOfLargeCellsReadsLittle walks cells that one answer does not hold.
func TestSweepOfLargeCellsReadsLittle(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	for i := range 12 {
		s.commit(t, store.OK, put(0, listedCell(store.CellID(fmt.Sprint("s", i)), strings.Repeat("b", store.MaxCell))))
	}
	server.Do(t, "DEL", "ddq:{mail:0}:wakes", "ddq:{mail:0}:lists")
	if repaired := sweepWhole(t, s); repaired != 24 {
		t.Errorf("repaired %d, want when and where each of 12 cells is", repaired)
	}
}

// TestLargestCommit makes commits of as many pieces as one may have, of each kind.
func TestLargestCommit(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	const most = store.MaxPieces
	tasks := newTasks(most, 1)
	var adds, puts, send, removes store.Commit
	for i, task := range tasks {
		task.Tells, task.Traits = "sa", &store.Traits{Priority: 3, OrderingKey: fmt.Sprint(i)}
		task.Indexed, task.Attributes = store.NewIndexSet("name"), []store.Attribute{{Key: "name", Value: "x"}}
		adds.Adds = append(adds.Adds, task)
		puts.Puts = append(puts.Puts, store.Put{Cell: listedCell(store.CellID(fmt.Sprint("s", i)), "x")})
		send.Send = append(send.Send, store.Parcel{To: "sa", Topic: "other"})
		removes.Removes = append(removes.Removes, store.Remove{ID: task.ID, Due: task.Due})
	}
	s.commit(t, store.OK, adds)
	holds, acks := holdsFor(tasks)
	if _, _, err := s.Hold(t.Context(), s.shard, s.fence, holds); err != nil {
		t.Fatal(err)
	}
	for _, retention := range []time.Duration{time.Hour, 0} {
		s.commit(t, store.OK, store.Commit{Acks: acks, Retention: retention})
		s.commit(t, store.OK, adds)
		if retention > 0 {
			if _, _, err := s.Hold(t.Context(), s.shard, s.fence, holds); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []store.Commit{removes, puts, send} {
		s.commit(t, store.OK, c)
	}
	s.commit(t, store.OK, store.Commit{Drop: s.numbers(t, most)})
	stats, err := s.Stats(t.Context(), []store.Shard{s.shard})
	if err != nil || stats[0].Cells != most || stats[0].Parcels != 3*most || stats[0].Pending != 0 {
		t.Errorf("stats are %+v, %v", stats, err)
	}
	puts.Take = 1
	if _, _, err := s.Commit(t.Context(), s.shard, nil, []store.Commit{puts}); err == nil {
		t.Error("a commit of more pieces was made")
	}
}

func TestMemoryPerIdleCell(t *testing.T) {
	if testing.Short() {
		t.Skip("puts 62,500 cells")
	}
	const cells, most = 62_500, 470 // which fill the tables of Redis as a million do: 95 % of a power of two
	server := redistest.Start(t, "--appendonly", "no")
	s := claim(t, openVolatile(t, server))
	before := infoNumber(t, server, "used_memory")
	fillCells(t, s, cells)
	bytes := (infoNumber(t, server, "used_memory") - before) / cells
	t.Logf("%.1f bytes per cell with a body of %d", bytes, payloadSize)
	if bytes > most {
		t.Errorf("an idle cell takes %.1f bytes, want at most %d", bytes, most)
	}
}

// TestBoxesGoOnBehindWhatIsUnreadable writes nonsense between parcels.
func TestBoxesGoOnBehindWhatIsUnreadable(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	send := store.Commit{Send: []store.Parcel{{To: "sa", Body: []byte("x")}}}
	for i, nonsense := range []string{"", "x", strings.Repeat("\x00", 11), strings.Repeat("\xff", 12), strings.Repeat("\xff", 60), "12345678\x00\x00\x00\x01\x00\x00"} {
		s.commit(t, store.OK, send)
		last := 2*i + 2
		server.Do(t, "XADD", "ddq:{mail:0}:in", fmt.Sprint(last, "-0"), "p", nonsense)
		server.Do(t, "HSET", "ddq:{mail:0}:owner", "in", last)
	}
	s.commit(t, store.OK, send)
	parcels, err := s.Parcels(t.Context(), s.shard, store.InBox, 0, 100)
	if err != nil || len(parcels) != 7 {
		t.Errorf("%d parcels, %v, want 7", len(parcels), err)
	}
}

// TestCellsThatCannotBeStoredAreRefused sees that nothing of a call is done with one of them.
func TestCellsThatCannotBeStoredAreRefused(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	before := digest(t, server)
	twice := put(0, listedCell("sa", "one"))
	twice.Puts = append(twice.Puts, twice.Puts[0])
	long, late := listedCell("sa", "one"), listedCell("sa", "one")
	long.List, late.Wake = strings.Repeat("l", 256), 1<<60
	for name, bad := range map[string]store.Commit{
		"one without an id": put(0, listedCell("", "one")), "one that is put twice": twice,
		"one of a list with a long name": put(0, long), "one that wakes too late": put(0, late),
	} {
		good := put(0, listedCell("sgood", "one"))
		if _, _, err := s.Commit(t.Context(), s.shard, nil, []store.Commit{good, good, bad}); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
	if digest(t, server) != before {
		t.Error("a refused call changed something")
	}
	if cells, err := s.Cells(t.Context(), s.shard, []store.CellID{""}); err != nil || cells[0].Version != 0 {
		t.Errorf("a cell without an id: %v, %v", cells, err)
	}
}

// numbers are those of the out-box, in order, at most so many.
func (s shardOf) numbers(t *testing.T, most int) []int64 {
	t.Helper()
	parcels, err := s.Parcels(t.Context(), s.shard, store.OutBox, 0, most)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int64, len(parcels))
	for i := range parcels {
		all[i] = parcels[i].Number
	}
	return all
}

// TestNumbersOfTheOutBoxAreGivenOnce: other shards, which may be on servers that lost nothing, remember
// which numbers they got.
func TestNumbersOfTheOutBoxAreGivenOnce(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	send := store.Commit{Send: []store.Parcel{{To: "sa", Topic: "other", Body: []byte("x")}}}
	s.commit(t, store.OK, send)
	was := server.Do(t, "HGET", ownerKey(s.shard), "out")
	s.commit(t, store.OK, send)
	lost := s.numbers(t, 10)[1]
	server.Do(t, "HSET", ownerKey(s.shard), "out", was) // as on a server that did not get the second one
	server.Do(t, "XDEL", strings.Replace(ownerKey(s.shard), ":owner", ":out", 1), fmt.Sprint(lost, "-0"))
	s.commit(t, store.OK, send)
	if all := s.numbers(t, 10); len(all) != 2 || all[1] <= lost {
		t.Errorf("the out-box has %d, and %d was lost", all, lost)
	}
}

// TestEntriesThatCannotBeReadAreNoEnd: a page that has nothing but such entries is not an empty one.
func TestEntriesThatCannotBeReadAreNoEnd(t *testing.T) {
	server := redistest.Start(t)
	s := claim(t, open(t, server.URL()))
	const ours = "ddq:{mail:0}:"
	for _, box := range []string{"in", "out"} {
		for n := range 100 {
			server.Do(t, "XADD", ours+box, fmt.Sprint(n+1, "-0"), "p", strings.Repeat("\xff", 20))
		}
	}
	server.Do(t, "HSET", ours+"owner", "in", 100, "out", 100, "schema", 2)
	c := store.Commit{Send: []store.Parcel{{To: "sa", Body: []byte("in")}, {To: "sa", Topic: "other", Body: []byte("out")}}}
	if _, got, err := s.Commit(t.Context(), s.shard, &s.fence, []store.Commit{c}); err != nil || got[0].Status != store.OK {
		t.Fatalf("%+v, %v", got, err)
	}
	for box, want := range map[store.Box]string{store.InBox: "in", store.OutBox: "out"} {
		page, err := s.Parcels(t.Context(), s.shard, box, 0, 10)
		if err != nil || len(page) != 1 || string(page[0].Body) != want {
			t.Errorf("box %d: %+v, %v", box, page, err)
		}
	}
}
