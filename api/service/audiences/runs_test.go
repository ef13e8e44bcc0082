package audiences

import (
	"context"
	"testing"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/store/place"
)

// runsOfTest are audiences with a topic, in which walks lie, whose owner is told nothing.
type runsOfTest struct {
	*Audiences
	topic *store.Topic
	told  int
}

func newRuns(t *testing.T) *runsOfTest {
	st := memstore.New()
	t.Cleanup(func() { st.Close() })
	r := &runsOfTest{topic: &store.Topic{Name: "mail", Shards: 4}}
	r.Audiences = New(st, Limits{}, Outside{
		Topics: func(context.Context) ([]store.Topic, error) {
			if r.topic == nil {
				return nil, nil
			}
			return []store.Topic{*r.topic}, nil
		},
		Topic: func(_ context.Context, name string) (*store.Topic, error) {
			if r.topic == nil || name != r.topic.Name {
				return nil, nil
			}
			return r.topic, nil
		},
		Tell: func(context.Context, string, int) { r.told++ },
	})
	create(t, r.Audiences, 2)
	return r
}

// begin has a run begin, as its owner does.
func (r *runsOfTest) begin(t *testing.T, schedule string) *audience.Walk {
	t.Helper()
	a, err := r.Record(t.Context(), "users")
	if err != nil {
		t.Fatal(err)
	}
	id := place.DerivedID([]byte("0123456789 of "+schedule), schedule)
	w := &audience.Walk{Order: audience.Order{
		Run: id, Schedule: schedule, At: 1000, Occurrence: 900, Audience: "users", Quiet: audience.Defer, Tracked: true,
		Spread: audience.Spread{Window: 60_000_000_000},
	}}
	w.Begin(a, audience.Kind{None: true}, 7)
	for n := range a.Shards {
		err := r.Change(t.Context(), a, n, func(d *audience.Directory) (store.Commit, error) {
			version, c, _ := d.Begin(audience.Run{ID: id, Topic: "mail", Schedule: schedule})
			w.BeginShard(n, version, d, nil)
			return c, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.keep(t, w)
	return w
}

// keep puts the cell of a walk.
func (r *runsOfTest) keep(t *testing.T, w *audience.Walk) {
	t.Helper()
	c := store.Cell{ID: audience.WalkID(w.Run), Wake: 1000, Body: w.Body()}
	if _, err := r.Commit(t.Context(), place.Candidates(r.topic, w.Run)[0], store.Commit{Puts: []store.Put{{Cell: c, If: store.AnyVersion}}}); err != nil {
		t.Fatal(err)
	}
}

func TestRunsShowHowFarTheyAre(t *testing.T) {
	r := newRuns(t)
	w := r.begin(t, "digest")
	w.Verdicts[audience.Taken], w.Verdicts[audience.OptedOut], w.Ends[0] = 3, 1, 2
	r.keep(t, w)
	runs, err := r.Runs(t.Context(), "users", 5000)
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs are %+v, %v", runs, err)
	}
	got := runs[0]
	if got.Walk.Run != w.Run || got.Topic != "mail" || got.Schedule != "digest" || got.Planned != 7 || got.Made() != 3 || got.Ends[0] != 2 || got.Next != 1000 || got.Behind != 4000 {
		t.Errorf("it is %+v", got)
	}
	if _, err := r.Run(t.Context(), "users", "nobody", 5000); reasonOf(err) != "NO_RUN" {
		t.Errorf("a run that is none: %v", err)
	}
	if err := r.Delete(t.Context(), "users", 1); reasonOf(err) != "AUDIENCE_IN_USE" {
		t.Errorf("delete: %v", err)
	}
}

// TestARunThatHasNotBegunIsOfItsAudience: the audience has not noted it, and nothing has the audience any more.
func TestARunThatHasNotBegunIsOfItsAudience(t *testing.T) {
	r := newRuns(t)
	r.keep(t, &audience.Walk{Order: audience.Order{Run: "run", Schedule: "digest", Audience: "users", Quiet: audience.Defer}})
	if err := r.Delete(t.Context(), "users", 1); reasonOf(err) != "AUDIENCE_IN_USE" {
		t.Errorf("delete: %v", err)
	}
}

func TestCancelledRunMakesNothingMore(t *testing.T) {
	r := newRuns(t)
	w := r.begin(t, "digest")
	for i := range 2 {
		got, err := r.CancelRun(t.Context(), "users", w.Run, false, 2000)
		if err != nil || !got.Cancelled || got.Next != 0 {
			t.Fatalf("cancelled: %+v, %v", got, err)
		}
		if r.told != i+1 {
			t.Errorf("the owner was told %d times", r.told)
		}
	}
	got, err := r.CancelRun(t.Context(), "users", w.Run, true, 2000)
	if err != nil || got.Phase != audience.Undoing {
		t.Errorf("with delete: %+v, %v", got, err)
	}
}

func TestRunThatHasEndedIsRemembered(t *testing.T) {
	r := newRuns(t)
	a, _ := r.Record(t.Context(), "users")
	for i, cancelled := range []bool{true, false} {
		w := r.begin(t, "digest")
		w.Cancelled, w.Phase, w.Planned = cancelled, audience.Over, int64(i)
		for n := range 2 {
			if err := r.EndRun(t.Context(), a, n, audience.PastRun{Topic: "mail", Ended: 3000, Walk: *w}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.Run(t.Context(), "users", w.Run, 5000)
		if err != nil || got.Ended != 3000 || got.Cancelled != cancelled || got.Planned != int64(i) {
			t.Errorf("it is %+v, %v", got, err)
		}
		if _, err = r.CancelRun(t.Context(), "users", w.Run, true, 5000); (err == nil) != cancelled || err != nil && reasonOf(err) != "RUN_OVER" {
			t.Errorf("cancelled %v before: %v", cancelled, err)
		}
	}
}

// TestLostRunIsForgotten has the topic of a run go, with the walk in it.
func TestLostRunIsForgotten(t *testing.T) {
	r := newRuns(t)
	first, second := r.begin(t, "digest"), r.begin(t, "news")
	r.topic = nil
	if got, err := r.Run(t.Context(), "users", first.Run, 5000); err != nil || !got.Lost || got.Schedule != "digest" {
		t.Errorf("it is %+v, %v", got, err)
	}
	if _, err := r.CancelRun(t.Context(), "users", first.Run, false, 5000); err != nil {
		t.Error(err)
	}
	if got, err := r.Run(t.Context(), "users", first.Run, 5000); err != nil || got.Lost || !got.Cancelled {
		t.Errorf("after cancel it is %+v, %v", got, err)
	}
	if got, err := r.Run(t.Context(), "users", second.Run, 5000); err != nil || !got.Lost {
		t.Errorf("the other one is %+v, %v", got, err)
	}
	if err := r.Delete(t.Context(), "users", 1); err != nil {
		t.Errorf("delete: %v", err)
	}
}
