package schedule

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

// TestCommit keeps a schedule in a store: through a run, an answer that is lost, a race
// and its end.
func TestCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New()
		defer db.Close()
		f := keptFixture{T: t, db: db, shard: store.Shard{Topic: "mail"}, topic: &store.Topic{Name: "mail", Indexed: store.NewIndexSet("a")}}
		now := f.now()
		f.s = &Schedule{Spec: Spec{
			Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "0 * * * *"}}}, Overlap: Skip, CatchUp: Last, Grace: time.Minute,
		}, Name: "nightly", Life: 3, Phase: Active, Anchor: now, Decided: now}
		f.s.Template.ExpireAfter = time.Hour
		f.step(nil, store.OK)
		f.step(nil, store.OK)

		_, wakes, err := db.Wakes(t.Context(), f.shard, store.WakeQuery{To: store.MaxDue, Limit: 10})
		if err != nil || len(wakes) != 1 || wakes[0].ID != CellID("nightly") {
			t.Fatalf("wakes %v, %v", wakes, err)
		}
		time.Sleep(time.Until(wakes[0].At.Time()))
		c := f.step(nil, store.OK)
		task := c.Adds[0]
		if task.Tells != CellID("nightly") || task.RunOf.Occurrence != task.Due || task.Expires != task.Due.Add(time.Hour) || task.Indexed != f.topic.Indexed || task.Created != f.now() {
			t.Errorf("the task is %+v", task)
		}

		// The same commit again: the first answer was lost.
		if r := f.commit(&c); r.Status != store.Stale || !Landed(&c, &r) {
			t.Errorf("the same commit again is %+v", r)
		}
		other := c
		other.Puts = []store.Put{c.Puts[0]}
		other.Puts[0].Wake++
		if r := f.commit(&other); r.Status != store.Stale || Landed(&other, &r) {
			t.Errorf("another commit is %+v", r)
		}

		c = f.step(Pause{By: "ada"}, store.OK)
		if len(c.Removes) != 1 || c.Removes[0].ID != task.ID {
			t.Errorf("removes %+v", c.Removes)
		}
		parcels, err := db.Parcels(t.Context(), f.shard, store.InBox, 0, 10)
		if err != nil || len(parcels) != 1 || parcels[0].To != CellID("nightly") {
			t.Fatalf("parcels %v, %v", parcels, err)
		}
		f.step(Told(&parcels[0]), store.OK)
		if len(f.s.Recalled) != 0 {
			t.Errorf("recalled are %v", f.s.Recalled)
		}
		if cells, err := db.Listed(t.Context(), f.shard, List, Listed(""), 10); err != nil || len(cells) != 1 {
			t.Errorf("listed are %v, %v", cells, err)
		}
		if cells, err := db.Listed(t.Context(), f.shard, List, Listed("nightly"), 10); err != nil || len(cells) != 0 {
			t.Errorf("listed behind it are %v, %v", cells, err)
		}

		c = f.step(Trigger{Request: "r", Overlap: Allow}, store.OK)
		run := c.Adds[0].ID
		c = f.step(Delete{CancelOpen: true}, store.OK)
		if _, found, err := db.Get(t.Context(), f.shard, []string{run}); err != nil || found[0].State != store.StateUnknown {
			t.Errorf("the run that was to be cancelled is %v, %v", found, err)
		}
		if r := f.commit(&c); r.Status != store.Stale || !Landed(&c, &r) {
			t.Errorf("a deletion again is %+v", r)
		}
	})
}

// TestTold goes through the ways in which a task ends.
func TestTold(t *testing.T) {
	for _, c := range []struct {
		ended store.Ended
		want  Event
	}{
		{store.Ended{Kind: store.ChangeDone, Started: 3}, Ended{Outcome: Done, At: 5, Started: 3}},
		{store.Ended{Kind: store.ChangeDead, Reason: store.ReasonMaxRetries}, Ended{Outcome: Failed, At: 5}},
		{store.Ended{Kind: store.ChangeDead, Reason: store.ReasonExpired}, Ended{Outcome: Failed, At: 5}},
		{store.Ended{Kind: store.ChangeDead, Reason: store.ReasonCancelled}, Ended{Outcome: Removed, Dead: true, At: 5}},
		{store.Ended{Kind: store.ChangeDeleted}, Ended{Outcome: Removed, At: 5}},
		{store.Ended{Kind: store.ChangeRequeued}, Requeued{}},
	} {
		if got := Told(&store.Parcel{At: 5, Ended: &c.ended}); got != c.want {
			t.Errorf("%+v means %+v, want %+v", c.ended, got, c.want)
		}
	}
	if got := Told(&store.Parcel{Body: []byte("x")}); got != nil {
		t.Errorf("a parcel of others means %v", got)
	}
}

// keptFixture is a schedule and the store that it is kept in.
type keptFixture struct {
	*testing.T
	db      *memstore.Store
	shard   store.Shard
	topic   *store.Topic
	s       *Schedule
	version int64
}

func (f *keptFixture) now() store.Millis { return store.Millis(time.Now().UnixMilli()) }

// step steps, and commits what comes of it.
func (f *keptFixture) step(e Event, want store.Status) store.Commit {
	f.Helper()
	table, err := f.s.Table()
	if err != nil {
		f.Fatal(err)
	}
	s, out := Step(f.s, e, Env{Now: f.now(), Lead: 5 * time.Second, Table: table})
	c, err := Commit(s, &out, f.version, f.topic, f.now())
	if err != nil {
		f.Fatal(err)
	}
	if r := f.commit(&c); r.Status != want {
		f.Fatalf("the commit is %+v, want %v", r, want)
	}
	f.s, f.version = s, f.version+1
	return c
}

func (f *keptFixture) commit(c *store.Commit) store.CommitResult {
	f.Helper()
	_, results, err := f.db.Commit(f.Context(), f.shard, nil, []store.Commit{*c})
	if err != nil {
		f.Fatal(err)
	}
	return results[0]
}

// A run of an audience is a cell that makes its tasks. It is asked to end by a parcel, and
// tells by one that it is over.
func TestCommitOfAnAudience(t *testing.T) {
	now := store.Millis(1_900_000_000_000)
	s := &Schedule{Spec: Spec{
		Timetable: timetable.Spec{Entries: []timetable.Entry{{Every: time.Minute}}}, Overlap: CancelOther, CatchUp: Last, Grace: time.Minute,
		Audience: &Target{Name: "users", Kind: "digest", Window: time.Hour, Quiet: 2},
	}, Name: "nightly", Life: 3, Phase: Active, Anchor: now, Decided: now}
	step := func(e Event) store.Commit {
		t.Helper()
		table, err := s.Table()
		if err != nil {
			t.Fatal(err)
		}
		next, out := Step(s, e, Env{Now: now, Lead: Lead, Table: table})
		c, err := Commit(next, &out, 1, &store.Topic{Name: "mail"}, now)
		if err != nil {
			t.Fatal(err)
		}
		s = next
		now = c.Puts[0].Wake
		return c
	}
	step(nil) // to the time of the first occurrence, not before
	first := step(nil)
	if len(first.Adds) > 0 || len(first.Puts) != 3 || first.Puts[1].ID.Kind() != store.CellWalk || first.Puts[1].If != 0 {
		t.Fatalf("a run makes %+v", first)
	}
	if template, err := DecodeTemplate(first.Puts[2].Body); err != nil || template.Slack != 0 {
		t.Errorf("its template is %+v, %v", template, err)
	}
	second := step(nil)
	if len(second.Puts) != 1 || len(second.Send) != 1 || second.Send[0].To != first.Puts[1].ID {
		t.Errorf("the next occurrence cancels it: %+v", second)
	}
	told := TellEnd(s.Name, s.ID(s.Open[0].Occurrence), store.ChangeDeleted, now, now)
	third := step(Told(&told))
	if len(third.Puts) != 3 || s.Totals[Removed] != 1 {
		t.Errorf("once it has told that it is over: %+v, %v", third, s.Totals)
	}
}

// TestARunThatAnEditDecidesIsAsItWasBefore has a schedule lose its audience at the moment in which a run of it is due.
func TestARunThatAnEditDecidesIsAsItWasBefore(t *testing.T) {
	const due = 3_600_000
	s := &Schedule{Spec: Spec{
		Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "0 * * * *"}}}, Overlap: Skip, CatchUp: Last, Grace: time.Minute,
		Audience: &Target{Name: "users"},
	}, Name: "nightly", Life: 3, Phase: Active, Anchor: 1, Decided: 1}
	table, err := s.Table()
	if err != nil {
		t.Fatal(err)
	}
	plain := s.Spec
	plain.Audience = nil
	after, out := Step(s, Edit{Spec: plain, Table: table}, Env{Now: due, Table: table})
	c, err := Commit(after, &out, 1, &store.Topic{Name: "mail"}, due)
	if err != nil || len(out.Make) != 1 || len(c.Adds) != 0 {
		t.Fatalf("makes %+v, adds %v: %v", out.Make, c.Adds, err)
	}
	if last := c.Puts[len(c.Puts)-1]; len(c.Puts) != 3 || last.ID.Key() != out.Make[0].ID || after.Audience != nil {
		t.Errorf("puts %+v", c.Puts)
	}
}
