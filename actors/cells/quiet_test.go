package cells

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// busy makes a look at parcels while tasks are ready, as the shard does, and returns its calls.
func (r *lookRig) busy() (*Outcome, map[string]int) {
	r.Helper()
	counting := &countingCells{cellStoreOf: r.failing, calls: make(map[string]int)}
	r.Store = counting
	defer func() { r.Store = r.failing }()
	out := r.Look(r.Context(), Start{Fence: r.fence, Topic: r.topic, Told: true, Busy: true, Progress: r.progress, Cells: 1})
	if out.Err != nil {
		r.Fatal(out.Err)
	}
	r.progress = out.Progress
	return out, counting.calls
}

// hourly changes a schedule of each minute into one of each hour.
func hourly(s *schedule.Spec) { s.Timetable.Entries[0].Cron = "0 * * * *" }

// begun puts schedules that run each hour, and returns the tasks of their first runs, which are due.
func (r *lookRig) begun(edits map[string]func(*schedule.Spec)) (tasks map[string]string) {
	r.Helper()
	for name, edit := range edits {
		r.putWith(name, func(s *schedule.Spec) {
			hourly(s)
			if edit != nil {
				edit(s)
			}
		})
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
	r.look()
	tasks = make(map[string]string)
	for name := range edits {
		open := r.schedule(name).Open
		if len(open) != 1 {
			r.Fatalf("%s has %v open", name, open)
		}
		tasks[name] = r.schedule(name).ID(open[0].Occurrence)
	}
	return tasks
}

func TestAnEndThatNothingHangsOnIsPutOff(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		tasks := r.begun(map[string]func(*schedule.Spec){"a": nil, "b": nil})
		r.ack(tasks["a"])
		for range 2 {
			out, calls := r.busy()
			if !out.PutOff || calls["parcels"] != 1 || len(calls) != 1 || len(r.schedule("a").Open) != 1 {
				t.Fatalf("%+v with %v", out, calls)
			}
		}
		r.ack(tasks["b"])
		if out, _ := r.busy(); !out.PutOff || out.Progress.Heard != 2 {
			t.Fatalf("%+v", out)
		}
		if out, _, _ := r.told(); out.PutOff || len(r.schedule("a").Open)+len(r.schedule("b").Open) != 0 {
			t.Errorf("once no task is ready: %+v", out)
		}
		for _, name := range []string{"a", "b"} {
			if s := r.schedule(name); s.Totals[schedule.Done] != 1 || s.History[0].Outcome != schedule.Done {
				t.Errorf("%s is %+v", name, s)
			}
		}
	})
}

// TestWhatHangsOnAnEndIsNotPutOff has an end in the way that could be.
func TestWhatHangsOnAnEndIsNotPutOff(t *testing.T) {
	for what, edit := range map[string]func(*schedule.Spec){
		"an interval from the end": func(s *schedule.Spec) { s.Timetable.Entries = []timetable.Entry{{Every: time.Hour, FromEnd: true}} },
		"a pause after failures":   func(s *schedule.Spec) { s.PauseAt = 1 },
		"the next run":             func(s *schedule.Spec) { s.Timetable.Entries[0].Cron = "*/8 * * * * *" },
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(r *lookRig) {
				tasks := r.begun(map[string]func(*schedule.Spec){"a": nil, "b": edit})
				r.ack(tasks["a"])
				r.ack(tasks["b"])
				if out, _ := r.busy(); out.PutOff || r.schedule("b").Totals[schedule.Done] == 0 {
					t.Errorf("%+v", out)
				}
			})
		})
	}
}

// TestAnEndThatSomebodyElseChangedIsNotPutOff has a call of a user have an occurrence wait for the run.
func TestAnEndThatSomebodyElseChangedIsNotPutOff(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		tasks := r.begun(map[string]func(*schedule.Spec){"a": nil})
		was := r.schedule("a")
		table, err := was.Table()
		if err != nil {
			t.Fatal(err)
		}
		after, out := schedule.Step(was, schedule.Trigger{Request: "once", Overlap: schedule.BufferAll}, schedule.Env{Now: r.Now(), Lead: schedule.Lead, Table: table})
		found, err := r.db.Cells(r.Context(), r.ID, []store.CellID{schedule.CellID("a")})
		if err != nil {
			t.Fatal(err)
		}
		c, err := schedule.Commit(after, &out, found[0].Version, r.topic, r.Now())
		if err != nil {
			t.Fatal(err)
		}
		r.commit(c)
		if out := r.Look(r.Context(), Start{Fence: r.fence, Topic: r.topic, Changed: true, Progress: r.progress, Cells: 1}); out.Err != nil {
			t.Fatal(out.Err)
		}
		r.ack(tasks["a"])
		if out, _ := r.busy(); out.PutOff || len(runs(out)) != 1 {
			t.Errorf("%+v", out)
		}
	})
}

// TestWhereNoEndIsQuietABusyLookIsAnyOther has a workflow go on while tasks are ready: that takes no more calls.
func TestWhereNoEndIsQuietABusyLookIsAnyOther(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		r.Definitions, r.Workflows, r.Flows = runtime.NewDefinitions(), runtime.NewWorkflows(), &r.metrics.Workflows
		task := r.chain("a", "b")
		r.look()
		r.ack(task)
		if out, calls := r.busy(); out.PutOff || len(runs(out)) != 1 || calls["told"] != 1 || calls["parcels"] != 0 || calls["wakes"] != 0 {
			t.Errorf("%+v with %v", out, calls)
		}
	})
}

// TestABusyLookLeavesTheRestToTheNext has more ends than a look takes on.
func TestABusyLookLeavesTheRestToTheNext(t *testing.T) {
	inBubble(t, func(r *lookRig) {
		edits := make(map[string]func(*schedule.Spec))
		for i := range batch + 10 {
			edits["s"+string(rune('0'+i/100))+string(rune('0'+i/10%10))+string(rune('0'+i%10))] = nil
		}
		for name := range edits {
			r.putWith(name, hourly)
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		made := runs(r.look(), r.look())
		r.progress.Taken = 0
		for _, id := range made {
			r.ack(id)
		}
		from := Start{Fence: r.fence, Topic: r.topic, Busy: true, Progress: r.progress, Cells: 1}
		out := r.Look(r.Context(), from)
		if out.Err != nil || out.Again || out.PutOff || out.Progress.Taken == 0 || out.Progress.Taken >= out.Progress.Heard {
			t.Fatalf("%+v", out)
		}
		r.progress = out.Progress
		if out, _ := r.busy(); !out.PutOff {
			t.Errorf("what is left: %+v", out)
		}
	})
}
