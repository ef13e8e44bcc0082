package pebblestore

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

var cellShard = store.Shard{Topic: "runs"}

// mustCommit makes commits that must all be OK.
func mustCommit(t testing.TB, s store.Cells, commits ...store.Commit) {
	t.Helper()
	_, results, err := s.Commit(context.Background(), cellShard, nil, commits)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Status != store.OK {
			t.Fatalf("commit %d answered %v of %q", i, r.Status, r.ID)
		}
	}
}

// runOf is a commit that puts a cell in a version and adds the task of its run.
func runOf(version int64) store.Commit {
	id := fmt.Sprintf("run-%d", version)
	task := &store.Task{ID: id, Payload: []byte("p"), Due: 1, MaxRetries: -1, Fingerprint: 7, Tells: "sdaily"}
	cell := store.Cell{ID: "sdaily", Wake: store.Millis(1000 + version), List: "running", Listed: store.Millis(version), Body: []byte(id)}
	return store.Commit{Puts: []store.Put{{Cell: cell, If: version - 1}}, Adds: []*store.Task{task}, Send: []store.Parcel{{To: "tother", Topic: "elsewhere", Body: []byte(id)}}}
}

// TestCommitIsWholeAtAnyByteOfTheLog cuts the log of a store off at every byte that its
// commits wrote, as a crash may: a cell, its task and its parcel are there together, or none.
func TestCommitIsWholeAtAnyByteOfTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("opens a store for each byte, in one goroutine: make race-all plays it")
	}
	fs := vfs.NewMem()
	s := openMem(t, fs)
	mustCommit(t, s, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sother", Body: []byte("x")}, If: 0}}})
	log := logFile(t, fs)
	sizes := []int64{fileSize(t, fs, log)}
	for version := range int64(3) {
		mustCommit(t, s, runOf(version+1))
		sizes = append(sizes, fileSize(t, fs, log))
	}
	for cut := sizes[0]; cut <= sizes[3]; cut++ {
		whole := int64(0)
		for sizes[whole] <= cut && whole < 3 && sizes[whole+1] <= cut {
			whole++
		}
		checkRuns(t, cutOff(t, fs, log, cut), whole, cut)
	}
}

// checkRuns fails the test when what is there is not what so many runs made.
func checkRuns(t *testing.T, fs vfs.FS, runs, cut int64) {
	t.Helper()
	s, err := open(smallConfig, fs, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing was written
	cells, err := s.Cells(t.Context(), cellShard, []store.CellID{"sdaily"})
	if err != nil {
		t.Fatal(err)
	}
	stats, err := s.Stats(t.Context(), []store.Shard{cellShard})
	if err != nil {
		t.Fatal(err)
	}
	_, wakes, err := s.Wakes(t.Context(), cellShard, store.WakeQuery{To: store.MaxDue, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	parcels, err := s.Parcels(t.Context(), cellShard, store.OutBox, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	got := []int64{cells[0].Version, stats[0].Pending, int64(len(parcels)), stats[0].Parcels, int64(len(wakes)), stats[0].Cells}
	want := []int64{runs, runs, runs, runs, min(runs, 1), 1 + min(runs, 1)}
	if !slices.Equal(got, want) {
		t.Fatalf("cut off at byte %d: version, tasks, parcels, counted, wakes and cells are %v, want %v", cut, got, want)
	}
}

func logFile(t *testing.T, fs vfs.FS) string {
	t.Helper()
	names, err := fs.List(smallConfig.Dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if filepath.Ext(name) == ".log" {
			return fs.PathJoin(smallConfig.Dir, name)
		}
	}
	t.Fatal("no log")
	return ""
}

func fileSize(t *testing.T, fs vfs.FS, name string) int64 {
	t.Helper()
	info, err := fs.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// cutOff returns a copy of a file system in which a log has so many bytes, and nobody knows of more.
func cutOff(t *testing.T, fs vfs.FS, name string, size int64) vfs.FS {
	t.Helper()
	copied := vfs.NewMem()
	if _, err := vfs.Clone(fs, copied, smallConfig.Dir, smallConfig.Dir); err != nil {
		t.Fatal(err)
	}
	if err := copied.Remove(fs.PathJoin(smallConfig.Dir, "SYNCED")); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was read
	head := make([]byte, size)
	if _, err := io.ReadFull(f, head); err != nil {
		t.Fatal(err)
	}
	to, err := copied.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Write(head); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return copied
}

// TestHeldTaskTellsAfterAReopening acks a task whose hold is read from the directory.
func TestHeldTaskTellsAfterAReopening(t *testing.T) {
	fs := vfs.NewMem()
	s := openMem(t, fs)
	fence := claim(t, s, cellShard)
	mustCommit(t, s, runOf(1))
	token := store.NewToken()
	if _, results, err := s.Hold(t.Context(), cellShard, fence, []store.Hold{{ID: "run-1", Token: token, Visibility: time.Hour, Worker: "w"}}); err != nil || results[0].Status != store.OK {
		t.Fatalf("hold answered %v: %v", results, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openMem(t, fs)
	if _, statuses, err := s.Ack(t.Context(), cellShard, []store.Ack{{ID: "run-1", Token: token, Result: []byte("42")}}, 0); err != nil || statuses[0] != store.OK {
		t.Fatalf("ack answered %v: %v", statuses, err)
	}
	parcels, err := s.Parcels(t.Context(), cellShard, store.InBox, 0, 10)
	if err != nil || len(parcels) != 1 || parcels[0].To != "sdaily" || parcels[0].Ended.Kind != store.ChangeDone || string(parcels[0].Ended.Result) != "42" {
		t.Fatalf("the ack left %+v: %v", parcels, err)
	}
}

// TestLayoutIsThatOfCellsOnceThereIsOne looks at what programs of before look at.
func TestLayoutIsThatOfCellsOnceThereIsOne(t *testing.T) {
	for name, first := range map[string]store.Commit{
		"cell":   {Puts: []store.Put{{Cell: store.Cell{ID: "sa", Body: []byte("x")}}}},
		"parcel": {Send: []store.Parcel{{To: "sa", Body: []byte("x")}}},
		"task":   {Adds: []*store.Task{{ID: "a", Due: 1, Tells: "sa"}}},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := openMem(t, fs)
			if _, _, err := s.Add(t.Context(), cellShard, []*store.Task{{ID: "plain", Due: 1}}); err != nil {
				t.Fatal(err)
			}
			checkLayout(t, s, layoutFirst)
			mustCommit(t, s, first)
			checkLayout(t, s, layoutCells)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			checkLayout(t, openMem(t, fs), layoutCells)
		})
	}
}

func checkLayout(t *testing.T, s *Store, want byte) {
	t.Helper()
	var got []byte
	if err := s.dir.Read(layoutKey(), func(b []byte) error { got = slices.Clone(b); return nil }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []byte{want}) {
		t.Errorf("the layout is marked %v, want %d", got, want)
	}
}

// TestFullDirectoryCarriesOn has a directory without room refuse what brings work.
func TestFullDirectoryCarriesOn(t *testing.T) {
	c := Config{Dir: t.TempDir()}
	s := openStore(t, c)
	mustCommit(t, s, runOf(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.MinFree = 1 << 62
	s = openStore(t, c)
	_, _, err := s.Commit(t.Context(), cellShard, nil, []store.Commit{runOf(2)})
	if err == nil {
		t.Error("a full directory took a run")
	}
	mustCommit(t, s, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: "sdaily", Body: []byte("x")}, If: 1}}, Take: 1, Drop: []int64{1}})
}

// TestCellsAgreeWithTheReference does the same to this store and to the one in memory.
func TestCellsAgreeWithTheReference(t *testing.T) {
	kept := 0
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 1))
		rivals := []cellRival{newCellRival(t, memstore.New()), newCellRival(t, openMem(t, vfs.NewMem()))}
		before := ""
		for range 40 {
			step := randomStep(random)
			want, got := step.do(t, rivals[0]), step.do(t, rivals[1])
			kept += checkRecents(t, rivals[1].Store.(*Store))
			if got != want {
				t.Fatalf("seed %d: %s\nbefore %s\ngot    %s\nwant   %s", seed, step.what, before, got, want)
			}
			before = want
		}
	}
	if kept == 0 {
		t.Error("no task was kept in memory")
	}
}

// checkRecents compares what is in memory of tasks with what is stored, and returns how many there are.
func checkRecents(t *testing.T, s *Store) int {
	t.Helper()
	kept := &s.shards.get(cellShard, false).recents
	size := 0
	for key, want := range kept.byKey {
		var got []byte
		if err := s.dir.Read([]byte(key), func(b []byte) error { got = slices.Clone(b); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("in memory is %x, stored is %x", want, got)
		}
		size += len(key) + len(want)
	}
	if size != kept.size {
		t.Fatalf("%d bytes are counted, %d are kept", kept.size, size)
	}
	return len(kept.byKey)
}

type cellRival struct {
	store.Store
	cells store.Cells
	fence store.Fence
}

func newCellRival(t *testing.T, s interface {
	store.Store
	store.Cells
},
) cellRival {
	t.Helper()
	session := store.Session{Node: "node", Start: store.Token{1}, TTL: time.Hour, Begin: true}
	if _, err := s.RenewSession(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	_, fence, err := s.Claim(t.Context(), cellShard, session)
	if err != nil {
		t.Fatal(err)
	}
	return cellRival{s, s, fence}
}

type cellStep struct {
	what string
	call func(context.Context, cellRival) (string, error)
}

// do makes a step, and returns its answer and what is there behind it.
func (step cellStep) do(t *testing.T, r cellRival) string {
	t.Helper()
	answer, err := step.call(t.Context(), r)
	if err != nil {
		t.Fatal(step.what, err)
	}
	cells, err := r.cells.Cells(t.Context(), cellShard, cellIDs)
	if err != nil {
		t.Fatal(err)
	}
	_, snaps, err := r.Get(t.Context(), cellShard, cellTasks)
	if err != nil {
		t.Fatal(err)
	}
	var states []store.State
	for _, snap := range snaps {
		states = append(states, snap.State)
	}
	_, wakes, err := r.cells.Wakes(t.Context(), cellShard, store.WakeQuery{To: store.MaxDue, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	listed, err := r.cells.Listed(t.Context(), cellShard, "l", store.Wake{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	_, counts, err := r.cells.WakeHistogram(t.Context(), cellShard, []store.Millis{5, 15})
	if err != nil {
		t.Fatal(err)
	}
	stats, err := r.Counts(t.Context(), []store.Shard{cellShard})
	if err != nil {
		t.Fatal(err)
	}
	n := stats[0]
	return fmt.Sprintf("%s | %v %v %v %v %v | in %s | out %s | %d %d %d %d %d %d seq %d last %d", answer, cells, states, wakes, counts, listed,
		boxText(t, r, store.InBox), boxText(t, r, store.OutBox), n.Pending, n.Running, n.Done, n.Dead, n.Cells, n.Parcels, n.Seq, n.In)
}

func boxText(t *testing.T, r cellRival, box store.Box) (text string) {
	t.Helper()
	parcels, err := r.cells.Parcels(t.Context(), cellShard, box, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parcels {
		text += fmt.Sprintf(" %d>%s.%s:%s", p.Number, p.Topic, p.To, p.Body)
		if e := p.Ended; e != nil {
			text += fmt.Sprintf("%s/%v/%v/%d/%s/%s/%s", e.ID, e.Kind, e.Reason, e.Attempt, e.Worker, e.Error, e.Result)
		}
	}
	return text
}

var (
	cellIDs   = []store.CellID{"sa", "sb", "wa"}
	cellTasks = []string{"t1", "t2", "0193c1f0-5e1a-8ddc-8001-000000000003", "f193c1f0-5e1a-8ddc-8001-000000000004"} // two with a hash for an id
)

func pick[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }

// cellToken is the token under which every task is held.
var cellToken = store.Token{7}

func randomStep(random *rand.Rand) cellStep {
	id := pick(random, cellTasks)
	switch random.IntN(8) {
	case 0:
		return cellStep{"hold " + id, func(ctx context.Context, r cellRival) (string, error) {
			_, results, err := r.Hold(ctx, cellShard, r.fence, []store.Hold{{ID: id, Token: cellToken, Visibility: time.Hour, Worker: "w"}})
			text, err := statusText(results[0].Status, err)
			if task := results[0].Task; task != nil {
				text += fmt.Sprintf(" %s %d %s %s", task.Payload, task.Attempt, task.LastError, task.Tells)
			}
			return text, err
		}}
	case 1:
		reason := pick(random, []store.Reason{store.ReasonNone, store.ReasonPermanent})
		return cellStep{fmt.Sprint("nack ", id, reason), func(ctx context.Context, r cellRival) (string, error) {
			_, results, err := r.Nack(ctx, cellShard, []store.Nack{{ID: id, Token: cellToken, Reason: reason, Error: "e"}})
			return statusText(results[0].Status, err)
		}}
	case 2:
		return cellStep{"requeue " + id, func(ctx context.Context, r cellRival) (string, error) {
			_, results, err := r.Requeue(ctx, cellShard, []string{id, id})
			return statusText(results[0].Status, err)
		}}
	case 3:
		return cellStep{"remove " + id, func(ctx context.Context, r cellRival) (string, error) {
			_, results, err := r.Remove(ctx, cellShard, store.Removals(id, id))
			return statusText(results[0].Status, err)
		}}
	}
	commits := make([]store.Commit, 1+random.IntN(4))
	for i := range commits {
		commits[i] = randomCommit(random)
	}
	return cellStep{fmt.Sprintf("commit %+v", commits), func(ctx context.Context, r cellRival) (text string, err error) {
		for i := range commits {
			if err := r.known(ctx, &commits[i]); err != nil {
				return "", err
			}
		}
		_, results, err := r.cells.Commit(ctx, cellShard, nil, commits)
		for _, result := range results {
			text += fmt.Sprintf("%v %v %s,", result.Status, result.Cell, result.ID)
		}
		return text, err
	}}
}

// known has a commit forget no parcel that is not there yet, as nobody can have read it.
func (r cellRival) known(ctx context.Context, c *store.Commit) error {
	stats, err := r.Counts(ctx, []store.Shard{cellShard})
	if err != nil {
		return err
	}
	out, err := r.cells.Parcels(ctx, cellShard, store.OutBox, 0, 1000)
	c.Take = min(c.Take, stats[0].In)
	c.Drop = slices.DeleteFunc(c.Drop, func(n int64) bool {
		return !slices.ContainsFunc(out, func(p store.Parcel) bool { return p.Number == n })
	})
	return err
}

func statusText(s store.Status, err error) (string, error) { return s.String(), err }

func randomCommit(random *rand.Rand) (c store.Commit) {
	some := func() bool { return random.IntN(3) == 0 }
	for _, id := range cellIDs {
		if some() {
			cell := store.Cell{ID: id, Wake: store.Millis(random.IntN(3) * 10), List: pick(random, []string{"", "l"}), Listed: store.Millis(random.IntN(3))}
			if random.IntN(4) > 0 {
				cell.Body = []byte{byte('a' + random.IntN(20))}
			}
			c.Puts = append(c.Puts, store.Put{Cell: cell, If: pick(random, []int64{store.AnyVersion, store.AnyVersion, 0, 1, 2})})
		}
	}
	for range 2 {
		id := pick(random, cellTasks)
		switch random.IntN(12) {
		case 0:
			c.Under = append(c.Under, store.Holder{ID: id, Token: cellToken})
		case 1:
			c.Acks = append(c.Acks, store.Ack{ID: id, Token: cellToken, Result: []byte("r")})
			c.Retention = time.Duration(random.IntN(2)) * time.Hour
		case 2, 3:
			c.Removes = append(c.Removes, store.Remove{ID: id, Due: pick(random, []store.Millis{0, 0, 1, 2})})
		case 4:
			c.Cancels = append(c.Cancels, id)
		case 5, 6, 7, 8:
			c.Adds = append(c.Adds, &store.Task{ID: id, Payload: []byte{byte('a' + random.IntN(20))}, Due: 1, MaxRetries: -1, Tells: pick(random, []store.CellID{"", "sa"})})
		case 9:
			c.Send = append(c.Send, store.Parcel{To: "sa", Topic: pick(random, []string{"", "o"}), Body: []byte("p")})
		case 10:
			c.Take = int64(random.IntN(6))
		case 11:
			c.Drop = append(c.Drop, int64(1+random.IntN(3)))
		}
	}
	return c
}

func TestCellsAndParcelsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := store.Cell{
			ID: "sa", Version: rapid.Int64Range(1, 1<<60).Draw(t, "version"), Wake: store.Millis(rapid.Int64().Draw(t, "wake")),
			List: rapid.String().Draw(t, "list"), Listed: store.Millis(rapid.Int64().Draw(t, "listed")), Body: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "body"),
		}
		head, body, err := decodeCell(appendCell(nil, &want))
		if got := head.cell("sa", body); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v: %v\nwant %+v", got, err, want)
		}
		p := store.Parcel{At: store.Millis(rapid.Int64().Draw(t, "at")), To: store.CellID(rapid.String().Draw(t, "to"))}
		if rapid.Bool().Draw(t, "ended") {
			p.Ended = &store.Ended{
				ID: rapid.String().Draw(t, "id"), Kind: store.ChangeKind(rapid.Byte().Draw(t, "kind")), Reason: store.Reason(rapid.Byte().Draw(t, "reason")),
				Attempt: rapid.IntRange(0, 1<<40).Draw(t, "attempt"), Due: store.Millis(rapid.Int64().Draw(t, "due")), Started: store.Millis(rapid.Int64().Draw(t, "started")),
				Worker: rapid.String().Draw(t, "worker"), Error: rapid.String().Draw(t, "error"),
			}
			if rapid.Bool().Draw(t, "has result") {
				p.Ended.Result = rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "result")
			}
		} else {
			p.Topic, p.Body = rapid.String().Draw(t, "topic"), rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "sent")
		}
		if got, err := decodeParcel(appendParcel(nil, &p)); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("got %+v: %v\nwant %+v", got, err, p)
		}
	})
}

func TestNumbersOfShardsOfBeforeAreRead(t *testing.T) {
	whole := meta{batches: 1, seq: 2, pending: 3, done: 4, dead: 5, newest: uuid7{6, 7}, sealed: true, log: logMeta{last: 8}, boxes: boxMeta{cells: 1, in: 9, taken: 3, out: 2, leaving: 1}}
	queues := whole
	queues.queues = queueMeta{last: 1 << 50, waiting: 3}
	for name, m := range map[string]meta{"boxes": whole, "queues": queues, "queues only": {queues: queues.queues}, "log": {batches: 1, newest: unknown, log: whole.log}, "neither": {seq: 2, newest: unknown}, "no log": {boxes: whole.boxes}} {
		if got, err := decodeMeta(m.append(nil)); err != nil || got != m {
			t.Errorf("%s: got %+v: %v, want %+v", name, got, err, m)
		}
	}
	if n := whole.boxes.parcels(); n != 7 {
		t.Errorf("there are %d parcels, want 7", n)
	}
}

// TestCommitThatNamesATaskTwiceChangesItOnce also has it cancel what it acks.
func TestCommitThatNamesATaskTwiceChangesItOnce(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	fence := claim(t, s, cellShard)
	task := func(id string) *store.Task { return &store.Task{ID: id, Due: 1, MaxRetries: -1, Tells: "sa"} }
	mustCommit(t, s, store.Commit{Adds: []*store.Task{task("held"), task("pending")}})
	if _, results, err := s.Hold(t.Context(), cellShard, fence, []store.Hold{{ID: "held", Token: cellToken, Visibility: time.Hour}}); err != nil || results[0].Status != store.OK {
		t.Fatalf("hold answered %v: %v", results, err)
	}
	ack, remove := store.Ack{ID: "held", Token: cellToken}, store.Remove{ID: "pending", Due: 1}
	mustCommit(t, s, store.Commit{
		Acks: []store.Ack{ack, ack}, Removes: []store.Remove{remove, remove}, Cancels: []string{"held", "held", "pending"},
		Adds: []*store.Task{task("new"), task("new")},
	})
	parcels, err := s.Parcels(t.Context(), cellShard, store.InBox, 0, 10)
	if err != nil || len(parcels) != 2 || parcels[0].Ended.ID != "held" || parcels[1].Ended.ID != "pending" {
		t.Fatalf("the commit left %+v: %v", parcels, err)
	}
	stats, err := s.Stats(t.Context(), []store.Shard{cellShard})
	if err != nil || stats[0].Pending != 1 || stats[0].Running != 0 {
		t.Fatalf("%d tasks are pending and %d running: %v", stats[0].Pending, stats[0].Running, err)
	}
	verifyWhole(t, s, cellShard)
}

// TestCommitsThatMakeNoSenseChangeNothing refuses the whole call.
func TestCommitsThatMakeNoSenseChangeNothing(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	cell := store.Cell{ID: "sa", Wake: 10, Body: []byte("x")}
	for name, puts := range map[string][]store.Put{
		"no id":     {{Cell: store.Cell{Body: []byte("x")}}},
		"twice":     {{Cell: cell}, {Cell: cell}},
		"long list": {{Cell: store.Cell{ID: "sb", List: strings.Repeat("l", maxList+1), Body: []byte("x")}}},
	} {
		good := store.Commit{Puts: []store.Put{{Cell: cell, If: store.AnyVersion}}}
		if _, _, err := s.Commit(t.Context(), cellShard, nil, []store.Commit{good, {Puts: puts}}); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
	stats, err := s.Stats(t.Context(), []store.Shard{cellShard})
	if err != nil || stats[0].Cells != 0 {
		t.Errorf("there are %d cells: %v", stats[0].Cells, err)
	}
}
