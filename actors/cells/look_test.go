package cells

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

// lookRig is a shard with its owner's looker, on a store whose calls can be made to fail.
type lookRig struct {
	*testing.T
	*Looker
	db       *memstore.Store
	failing  *failingCells
	fence    store.Fence
	topic    *store.Topic // as the node knows it
	stored   *store.Topic // as it is; nil: as the node knows it
	progress Progress
	metrics  *metrics.Metrics
}

// failingCells fails the next calls, or lets somebody else be quicker.
type failingCells struct {
	cellStoreOf
	commits, reads int         // calls that are to fail
	lose           int         // commits that are made, and whose answer is lost
	before         func()      // called once, before a commit
	elsewhere      func()      // called before each commit without a fence
	down           store.Shard // whose calls fail; without a topic: none
}

// cellStoreOf is the role under another name: one field cannot be called as its method.
type cellStoreOf = store.Cells

var errBroken = errors.New("broken")

func (f *failingCells) Commit(ctx context.Context, s store.Shard, fence *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if before := f.before; before != nil {
		f.before = nil
		before()
	}
	if fence == nil && f.elsewhere != nil {
		f.elsewhere()
	}
	if f.isDown(s) {
		return store.Stamp{}, nil, errBroken
	}
	if f.commits > 0 {
		f.commits--
		return store.Stamp{}, nil, errBroken
	}
	stamp, results, err := f.cellStoreOf.Commit(ctx, s, fence, commits)
	if err == nil && f.lose > 0 {
		f.lose--
		return store.Stamp{}, nil, errBroken
	}
	return stamp, results, err
}

func (f *failingCells) isDown(s store.Shard) bool {
	return f.down.Topic != "" && f.down.Name() == s.Name()
}

func (f *failingCells) Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error) {
	if f.isDown(s) {
		return nil, errBroken
	}
	return f.cellStoreOf.Cells(ctx, s, ids)
}

func (f *failingCells) Wakes(ctx context.Context, s store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	if f.reads > 0 {
		f.reads--
		return store.Stamp{}, nil, errBroken
	}
	return f.cellStoreOf.Wakes(ctx, s, q)
}

func inBubble(t *testing.T, test func(r *lookRig)) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		defer db.Close()
		shard := store.Shard{Topic: "mail"}
		session := store.Session{Node: "n", Start: store.NewToken(), TTL: 24 * time.Hour, Begin: true}
		if _, err := db.RenewSession(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		_, fence, err := db.Claim(t.Context(), shard, session)
		if err != nil {
			t.Fatal(err)
		}
		r := &lookRig{T: t, db: db, failing: &failingCells{cellStoreOf: db}, fence: fence, metrics: metrics.New(prometheus.NewRegistry())}
		r.topic = &store.Topic{Name: "mail", Shards: 1, MaxPayload: 1 << 20}
		r.Looker = NewLooker(Shard{
			ID: shard, Store: r.failing, Tasks: db, Counts: db.Counts,
			TopicOf:   func(context.Context, string) (*store.Topic, error) { return cmp.Or(r.stored, r.topic), nil },
			Calendars: func(context.Context) (schedule.Calendars, error) { return nil, nil },
			Resolve:   func(_ context.Context, call func() error) (bool, error) { return false, call() },
			Now:       func() store.Millis { return store.Millis(time.Now().UnixMilli()) },
			Random:    func() float64 { return 0 },
			Metrics:   &r.metrics.Schedules, Log: slog.New(slog.DiscardHandler),
		})
		test(r)
	})
}

// put puts a schedule that runs each minute.
func (r *lookRig) put(name string) { r.putWith(name, nil) }

func (r *lookRig) putWith(name string, edit func(*schedule.Spec)) {
	r.Helper()
	now := r.Now()
	s := &schedule.Schedule{Spec: schedule.Spec{
		Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "* * * * *"}}},
		Overlap:   schedule.Skip, CatchUp: schedule.Last, Grace: time.Minute, History: 10,
	}, Name: name, Life: 7, Phase: schedule.Active, Anchor: now, Decided: now}
	if edit != nil {
		edit(&s.Spec)
	}
	table, err := s.Table()
	if err != nil {
		r.Fatal(err)
	}
	after, out := schedule.Step(s, nil, schedule.Env{Now: now, Lead: schedule.Lead, Table: table})
	c, err := schedule.Commit(after, &out, 0, r.topic, now)
	if err != nil {
		r.Fatal(err)
	}
	r.commit(c)
}

func (r *lookRig) commit(c store.Commit) {
	r.Helper()
	_, results, err := r.db.Commit(r.Context(), r.ID, nil, []store.Commit{c})
	if err != nil || results[0].Status != store.OK {
		r.Fatalf("commit: %v, %v", results, err)
	}
}

// look makes one look, and goes on from it as the shard does.
func (r *lookRig) look() *Outcome {
	out := r.Look(r.Context(), Start{Fence: r.fence, Topic: r.topic, Progress: r.progress, Cells: 1})
	if out.Err == nil && !out.Stuck {
		r.progress = out.Progress
	}
	return out
}

func (r *lookRig) schedule(name string) *schedule.Schedule {
	r.Helper()
	found, err := r.db.Cells(r.Context(), r.ID, []store.CellID{schedule.CellID(name)})
	if err != nil || found[0].Version == 0 {
		r.Fatalf("%s: %v, %v", name, found, err)
	}
	s, err := schedule.FromCell(found[0])
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// runs are the tasks that looks have made.
func runs(outs ...*Outcome) (ids []string) {
	for _, out := range outs {
		for _, made := range out.Made {
			for _, e := range made.Fresh {
				ids = append(ids, e.ID)
			}
		}
	}
	return ids
}

// hold has a worker hold a run.
func (r *lookRig) hold(id string) store.Token {
	r.Helper()
	hold := store.Hold{ID: id, Token: store.NewToken(), Visibility: time.Minute}
	_, held, err := r.db.Hold(r.Context(), r.ID, r.fence, []store.Hold{hold})
	if err != nil || held[0].Status != store.OK {
		r.Fatalf("hold: %v, %v", held, err)
	}
	return hold.Token
}

// ack has a worker do a run, which tells the schedule.
func (r *lookRig) ack(id string) {
	r.Helper()
	_, acked, err := r.db.Ack(r.Context(), r.ID, []store.Ack{{ID: id, Token: r.hold(id)}}, 0)
	if err != nil || acked[0] != store.OK {
		r.Fatalf("ack: %v, %v", acked, err)
	}
}

func TestALookThatFailsChangesNothing(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		before := r.progress
		for what, fail := range map[string]func(){
			"reads":   func() { r.failing.reads = 1 },
			"commits": func() { r.failing.commits = 1 },
		} {
			fail()
			if out := r.look(); !errors.Is(out.Err, errBroken) || len(runs(out)) != 0 {
				t.Errorf("%s fail: %+v", what, out)
			}
			if r.progress != before || len(r.schedule("minutely").Open) != 0 {
				t.Errorf("%s fail, and something changed", what)
			}
		}
		if out := r.look(); out.Err != nil || len(runs(out)) != 1 || out.Next == 0 {
			t.Errorf("once the store is back: %+v", out)
		}
	})
}

// An answer that is lost is one of unknown outcome: the next look finds what was made, and
// makes nothing twice.
func TestALostAnswerMakesNoSecondRun(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		r.failing.lose = 1
		if out := r.look(); !errors.Is(out.Err, errBroken) {
			t.Fatalf("%+v", out)
		}
		if out := r.look(); out.Err != nil || len(runs(out)) != 0 {
			t.Errorf("the look after it: %+v", out)
		}
		if open := r.schedule("minutely").Open; len(open) != 1 {
			t.Errorf("open runs are %v", open)
		}
	})
}

func TestAStaleCellIsSteppedAsItIs(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		r.failing.before = func() { // somebody pauses it between the read and the commit
			found, err := r.db.Cells(r.Context(), r.ID, []store.CellID{schedule.CellID("minutely")})
			if err != nil {
				t.Fatal(err)
			}
			s := r.schedule("minutely")
			table, err := s.Table()
			if err != nil {
				t.Fatal(err)
			}
			s.Decided = r.Now() // the pause has this minute decided, without a run
			paused, out := schedule.Step(s, schedule.Pause{By: "ada"}, schedule.Env{Now: r.Now(), Lead: schedule.Lead, Table: table})
			c, err := schedule.Commit(paused, &out, found[0].Version, r.topic, r.Now())
			if err != nil {
				t.Fatal(err)
			}
			r.commit(c)
		}
		if out := r.look(); out.Err != nil || out.Stuck || len(runs(out)) != 0 {
			t.Errorf("a look at a schedule that is paused meanwhile: %+v", out)
		}
		if s := r.schedule("minutely"); s.Phase != schedule.Paused || s.PausedBy != "ada" || len(s.Open) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A parcel lies in the box until a later commit forgets it: an owner that begins anew reads
// it again.
// TestAnEndCountsBehindACrowd has more ends before that of a run than a look takes on, as after
// midnight, when the next occurrence comes.
func TestAnEndCountsBehindACrowd(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		made := runs(r.look())
		var crowd store.Commit
		for i := range 2 * batch {
			crowd.Send = append(crowd.Send, store.Parcel{To: schedule.CellID(fmt.Sprint("other-", i)), Body: []byte("x")})
		}
		r.commit(crowd)
		r.ack(made[0])
		time.Sleep(time.Minute)
		if out := r.look(); out.Err != nil || len(runs(out)) != 1 || !out.Again {
			t.Errorf("at the next occurrence: %+v", out)
		}
		for range 3 {
			r.look()
		}
		got := r.schedule("minutely")
		if got.Made != 2 || got.Totals[schedule.Done] != 1 || len(got.Skipped) != 0 {
			t.Errorf("made %d, totals %v, skipped %v", got.Made, got.Totals, got.Skipped)
		}
		if parcels, err := r.db.Parcels(t.Context(), r.ID, store.InBox, 0, 10); err != nil || len(parcels) != 0 {
			t.Errorf("parcels that are not forgotten: %v, %v", parcels, err)
		}
	})
}

func TestAParcelThatReturnsChangesNothing(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		made := runs(r.look())
		if len(made) != 1 {
			t.Fatalf("made %v", made)
		}
		r.ack(made[0])
		if out := r.look(); out.Err != nil {
			t.Fatalf("%+v", out)
		}
		want := r.schedule("minutely")
		if want.Totals[schedule.Done] != 1 {
			t.Fatalf("totals %v", want.Totals)
		}
		if parcels, err := r.db.Parcels(t.Context(), r.ID, store.InBox, 0, 10); err != nil || len(parcels) != 1 {
			t.Fatalf("parcels %v, %v: the test is of one that is there still", parcels, err)
		}
		r.progress = Progress{} // another owner
		for range 3 {
			if out := r.look(); out.Err != nil || len(runs(out)) != 0 {
				t.Errorf("%+v", out)
			}
		}
		if got := r.schedule("minutely"); got.Totals[schedule.Done] != 1 || len(got.Open) != len(want.Open) {
			t.Errorf("the end was told once, and counts %v", got.Totals)
		}
		if parcels, err := r.db.Parcels(t.Context(), r.ID, store.InBox, 0, 10); err != nil || len(parcels) != 0 {
			t.Errorf("parcels that are not forgotten: %v, %v", parcels, err)
		}
	})
}

// A store may be set back between what a look reads and what it commits.
func TestAStoreThatIsSetBackMeanwhileKeepsItsParcels(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		r.ack(runs(r.look())[0])
		was := r.db.Clone()
		if out := r.look(); out.Err != nil || out.Progress.Taken == 0 {
			t.Fatalf("%+v", out)
		}
		restored := false
		r.failing.before = func() { r.db.Restore(was); restored = true }
		if out := r.look(); !restored || !errors.Is(out.Err, store.ErrAnotherServer) {
			t.Errorf("set back: %v, and %+v", restored, out)
		}
		for range 3 {
			if out := r.look(); out.Err != nil {
				t.Errorf("%+v", out)
			}
		}
		if s := r.schedule("minutely"); s.Totals[schedule.Done] != 1 {
			t.Errorf("the end of the run was told, and counts %v", s.Totals)
		}
	})
}

// A store that was set back has parcels again that were taken, and gives the numbers of others to
// new ones: neither is forgotten before a cell has it.
func TestAStoreThatWasSetBackKeepsItsParcels(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		time.Sleep(time.Minute)
		made := runs(r.look())
		if len(made) != 1 {
			t.Fatalf("made %v", made)
		}
		r.ack(made[0])
		was := r.db.Clone()
		if out := r.look(); out.Err != nil || out.Progress.Taken == 0 {
			t.Fatalf("%+v", out)
		}
		r.db.Restore(was)
		if s := r.schedule("minutely"); s.Totals[schedule.Done] != 0 {
			t.Fatalf("totals %v: the test is of an end that is to be taken again", s.Totals)
		}
		for range 3 {
			if out := r.look(); out.Err != nil {
				t.Errorf("%+v", out)
			}
		}
		if s := r.schedule("minutely"); s.Totals[schedule.Done] != 1 {
			t.Errorf("the end of the run was told, and counts %v", s.Totals)
		}
	})
}

// What is told to a cell that is gone is dropped, and counted once: however many rounds a
// look takes, and however often it is made anew.
func TestDroppedParcelsAreCountedOnce(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.put("minutely")
		r.put("another")
		time.Sleep(time.Minute)
		made := runs(r.look())
		r.commit(store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: schedule.CellID("minutely")}, If: store.AnyVersion}}})
		for _, id := range made {
			r.ack(id)
		}
		r.failing.commits = 1
		if out := r.look(); out.Err == nil {
			t.Fatal("the commit does not fail")
		}
		dropped := 0
		r.failing.before = func() { // one more round for the other schedule
			s, cell := r.schedule("another"), r.cell("another")
			cell.Body, _ = schedule.Encode(s)
			r.commit(store.Commit{Puts: []store.Put{{Cell: cell, If: cell.Version}}})
		}
		for range 3 {
			out := r.look()
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			dropped += out.Dropped
		}
		if dropped != 1 {
			t.Errorf("%d dropped, want 1", dropped)
		}
	})
}

func (r *lookRig) cell(name string) store.Cell {
	r.Helper()
	found, err := r.db.Cells(r.Context(), r.ID, []store.CellID{schedule.CellID(name)})
	if err != nil {
		r.Fatal(err)
	}
	return found[0]
}

// Runs with slack go where the fewest are: of as many as there are seconds none is near another.
func TestRunsWithSlackAreSpread(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		for i := range 60 {
			r.putWith(fmt.Sprint(i), func(s *schedule.Spec) { s.Template.Slack = time.Minute })
		}
		time.Sleep(time.Minute)
		slots := make(map[store.Millis]int)
		first, most := store.Millis(0), store.Millis(0)
		for range 3 {
			out := r.look()
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			for _, made := range out.Made {
				for _, e := range made.Fresh {
					slots[e.Due/500]++
					if first == 0 || e.Due < first {
						first = e.Due
					}
					most = max(most, e.Due)
				}
			}
		}
		for slot, n := range slots {
			if n > 2 {
				t.Errorf("%d runs within half a second at %v", n, (slot * 500).Time())
			}
		}
		if len(slots) < 50 || most.Sub(first) < 50*time.Second {
			t.Errorf("60 runs in %d halves of seconds, over %v", len(slots), most.Sub(first))
		}
	})
}

// TestARunThatIsRequeuedBeforeItIsDiscardedStaysKnown: another one has taken its place, so its dead letter is deleted, and
// somebody is faster.
func TestARunThatIsRequeuedBeforeItIsDiscardedStaysKnown(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.putWith("s", func(spec *schedule.Spec) { spec.Overlap, spec.History = schedule.CancelOther, 0 })
		time.Sleep(time.Minute)
		run := runs(r.look())[0]
		token := store.NewToken()
		_, held, err := r.db.Hold(r.Context(), r.ID, r.fence, []store.Hold{{ID: run, Token: token, Visibility: time.Hour}})
		if err != nil || held[0].Status != store.OK {
			r.Fatalf("hold: %v, %v", held, err)
		}
		time.Sleep(time.Minute)
		r.look()
		_, nacked, err := r.db.Nack(r.Context(), r.ID, []store.Nack{{ID: run, Token: token}})
		if err != nil || nacked[0].Status != store.OK {
			r.Fatalf("nack: %v, %v", nacked, err)
		}
		_, requeued, err := r.db.Requeue(r.Context(), r.ID, []string{run})
		if err != nil || requeued[0].Status != store.OK {
			r.Fatalf("requeue: %v, %v", requeued, err)
		}
		r.look()
		s := r.schedule("s")
		if !slices.ContainsFunc(s.Open, func(o schedule.Run) bool { return s.ID(o.Occurrence) == run }) {
			r.Errorf("of %+v none is the run that is pending again", s.Open)
		}
	})
}
