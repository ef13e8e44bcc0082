package actors_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
	"github.com/ddq-io/ddq/timer/timetable"
)

// every is a schedule of an interval.
func everySpec(d time.Duration) schedule.Spec {
	return schedule.Spec{
		Timetable: timetable.Spec{Entries: []timetable.Entry{{Every: d}}}, Overlap: schedule.Skip, CatchUp: schedule.Last,
		Grace: time.Minute, History: 10, Template: schedule.Template{Task: store.Task{Payload: []byte("x"), MaxRetries: -1}},
	}
}

// scheduled is a schedule of the topic mail, as tests see it in the store.
type scheduled struct {
	*testing.T
	node *actors.Node
	name string
}

func (s *scheduled) shard() store.Shard {
	ref, err := s.node.Topics().Open(s.Context(), "mail", true)
	if err != nil {
		s.Fatal(err)
	}
	topic := ref.Config()
	return place.In(topic, topic.Active(), place.KeyedID(s.name))
}

// putSchedule stores a schedule that counts from now on, without telling anybody.
func putSchedule(t *testing.T, n *actors.Node, name string, spec schedule.Spec) *scheduled {
	t.Helper()
	s := &scheduled{t, n, name}
	now := store.Millis(time.Now().UnixMilli())
	s.commit(&schedule.Schedule{Spec: spec, Name: name, Life: 7, Phase: schedule.Active, Anchor: now, Decided: now}, 0, nil)
	return s
}

// does has something happen to the schedule.
func (s *scheduled) does(e schedule.Event) {
	s.Helper()
	cell := s.cell()
	read, err := schedule.FromCell(cell)
	if err != nil {
		s.Fatal(err)
	}
	s.commit(read, cell.Version, e)
}

func (s *scheduled) commit(was *schedule.Schedule, version int64, e schedule.Event) {
	s.Helper()
	table, err := was.Table()
	if err != nil {
		s.Fatal(err)
	}
	now := store.Millis(time.Now().UnixMilli())
	next, out := schedule.Step(was, e, schedule.Env{Now: now, Lead: schedule.Lead, Table: table})
	ref, perr := s.node.Topics().Open(s.Context(), "mail", true)
	if perr != nil {
		s.Fatal(perr)
	}
	c, err := schedule.Commit(next, &out, version, ref.Config(), now)
	if err != nil {
		s.Fatal(err)
	}
	stamp, results, err := s.node.Cells().Commit(s.Context(), s.shard(), nil, []store.Commit{c})
	if err != nil || results[0].Status != store.OK {
		s.Fatal(results, err)
	}
	var made []store.Entry
	for _, t := range c.Adds {
		made = append(made, store.Entry{ID: t.ID, Due: t.Due})
	}
	if len(made) > 0 {
		ref.Pending(s.shard().N, stamp.Seq, made...)
	}
	ref.CellsChanged(s.shard().N)
}

func (s *scheduled) cell() store.Cell {
	s.Helper()
	cells, err := s.node.Cells().Cells(s.Context(), s.shard(), []store.CellID{schedule.CellID(s.name)})
	if err != nil {
		s.Fatal(err)
	}
	return cells[0]
}

func (s *scheduled) read() *schedule.Schedule {
	s.Helper()
	read, err := schedule.FromCell(s.cell())
	if err != nil {
		s.Fatal(err)
	}
	return read
}

// TestSchedule has a worker do what a schedule makes, for ten minutes.
func TestSchedule(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		start := time.Now()
		sched := putSchedule(t, s.Node(), "minutely", everySpec(time.Minute))
		for n := range 10 {
			servicetest.Idle(time.Until(start.Add(time.Duration(n+1) * time.Minute).Add(-time.Millisecond)))
			if got := w.Take(); len(got) != 0 {
				t.Fatalf("%d ms before its time there is %+v", 1, got)
			}
			servicetest.Idle(3 * time.Millisecond)
			d := w.TakeOne()
			if d.Task.RunOf == nil || d.Task.RunOf.Schedule != "minutely" || d.Task.RunOf.Occurrence != store.Millis(start.Add(time.Duration(n+1)*time.Minute).UnixMilli()) {
				t.Fatalf("the task is of %+v", d.Task.RunOf)
			}
			servicetest.Idle(100 * time.Millisecond)
			w.Sub.Settle(uint64(n+1), []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}})
			servicetest.Idle(time.Millisecond)
			if read := sched.read(); read.Totals[schedule.Done] != int64(n+1) || len(read.Open) != 0 {
				t.Fatalf("after run %d it is %+v", n, read)
			}
		}
		stats, err := s.Node().CountsOf(t.Context(), []store.Shard{sched.shard()})
		if err != nil || stats[0].Parcels != 0 || stats[0].Cells != 1 {
			t.Errorf("the shard has %+v, %v", stats, err)
		}
		sched.does(schedule.Delete{})
		servicetest.Idle(2 * time.Minute)
		if got := w.Take(); len(got) != 0 {
			t.Errorf("after its deletion there is %+v", got)
		}
	})
}

// runsOf are the occurrences of which tasks came, in order.
func runsOf(t *testing.T, w *servicetest.Stream, start time.Time) (at []time.Duration) {
	t.Helper()
	for _, d := range w.Take() {
		at = append(at, d.Task.RunOf.Occurrence.Time().Sub(start))
	}
	slices.Sort(at)
	return slices.Compact(at) // nobody settles, so they come again
}

// firstAt is when the first task came.
func firstAt(w *servicetest.Stream) time.Time {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.At[0]
}

// TestAScheduleOutlivesFaultsOfTheStore loses answers, and has the store away for 30 seconds.
func TestAScheduleOutlivesFaultsOfTheStore(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		start := time.Now().Truncate(time.Millisecond)
		spec := everySpec(10 * time.Second)
		spec.Overlap = schedule.Allow
		sched := putSchedule(t, s.Node(), "often", spec)
		for range 10 {
			f.Set(func(f *servicetest.FaultyStore) { f.Losing["commit"], f.Losing["wakes"] = 1, 1 })
			servicetest.Idle(10 * time.Second)
		}
		servicetest.Idle(3 * time.Second)
		f.Set(func(f *servicetest.FaultyStore) { f.Down = true })
		servicetest.Idle(30 * time.Second)
		f.Set(func(f *servicetest.FaultyStore) { f.Down = false })
		servicetest.Idle(17*time.Second + time.Millisecond)
		want := []time.Duration{}
		for n := range 15 {
			want = append(want, time.Duration(n+1)*10*time.Second)
		}
		if got := runsOf(t, w, start); !slices.Equal(got, want) {
			t.Errorf("runs of %v, want %v", got, want)
		}
		if got := sched.read(); len(got.Skipped) != 0 {
			t.Errorf("skipped %v", got.Skipped)
		}
	})
}

// TestARunIsMadeAheadOfTheDeathOfItsMaker kills the owner between making a run and its time.
func TestARunIsMadeAheadOfTheDeathOfItsMaker(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		start := time.Now().Truncate(time.Millisecond)
		sched := putSchedule(t, f.Nodes["a"].Sys.Node(), "nightly", everySpec(time.Minute))
		servicetest.Idle(time.Second)
		owner := f.Owners("mail")[sched.shard().N]
		other := "a"
		if owner == "a" {
			other = "b"
		}
		w := servicetest.Subscribe(t, f.Nodes[other].Sys, "mail", 10)
		sched.node = f.Nodes[other].Sys.Node()
		servicetest.Idle(time.Until(start.Add(time.Minute - 3*time.Second)))
		if len(sched.read().Open) != 1 {
			t.Fatalf("3 s before its time the schedule is %+v", sched.read())
		}
		f.Kill(f.Nodes[owner])
		servicetest.Idle(time.Until(start.Add(time.Minute + 30*time.Second)))
		if got := runsOf(t, w, start); !slices.Equal(got, []time.Duration{time.Minute}) {
			t.Errorf("runs of %v", got)
		}
		if at := firstAt(w).Sub(start.Add(time.Minute)); at < 0 {
			t.Errorf("delivered %v before its time", -at)
		} else {
			t.Logf("delivered %v late", at)
		}
		servicetest.Idle(2 * time.Minute)
		if got := sched.read(); got.Skipped[schedule.Overlapped] != 2 {
			t.Errorf("with the run open the schedule is %+v", got)
		}
	})
}

// TestAnEndThatWasNotToldIsFound has a schedule believe in a run whose task is gone.
func TestAnEndThatWasNotToldIsFound(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		start := time.Now().Truncate(time.Millisecond)
		sched := putSchedule(t, s.Node(), "often", everySpec(25*time.Minute))
		servicetest.Idle(25*time.Minute - time.Second)
		read, cell := sched.read(), sched.cell()
		parcels := func() []store.Parcel {
			found, err := s.Node().Cells().Parcels(t.Context(), sched.shard(), store.InBox, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		// The task goes, and the cell that it tells is not there to take that.
		c := store.Commit{
			Puts:    []store.Put{{Cell: store.Cell{ID: cell.ID}, If: cell.Version}},
			Removes: []store.Remove{{ID: read.ID(read.Open[0].Occurrence), Due: read.Open[0].Due}},
		}
		if _, results, err := s.Node().Cells().Commit(t.Context(), sched.shard(), nil, []store.Commit{c}); err != nil || results[0].Status != store.OK {
			t.Fatal(results, err)
		}
		servicetest.Idle(time.Second)
		if left := parcels(); len(left) != 0 {
			t.Fatalf("parcels for nobody: %+v", left)
		}
		sched.commit(read, 0, nil)
		servicetest.Idle(time.Until(start.Add(2 * time.Hour)))
		if got := runsOf(t, w, start); !slices.Equal(got, []time.Duration{100 * time.Minute}) {
			t.Errorf("runs of %v", got)
		}
		if got := sched.read(); got.Totals[schedule.Removed] != 1 || got.Skipped[schedule.Overlapped] != 2 {
			t.Errorf("the schedule is %+v", got)
		}
	})
}

// TestARunOfBeforeAReshardIsCancelled has a schedule whose runs cancel those before get other
// shards while a run is at its worker. The run stays in the shard in which it began.
func TestARunOfBeforeAReshardIsCancelled(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"]
		if _, err := a.Sys.Node().Topics().Create(t.Context(), longVisible(a.Sys)); err != nil {
			t.Fatal(err)
		}
		w := servicetest.Subscribe(t, a.Sys, "mail", 100)
		spec := everySpec(time.Minute)
		spec.Overlap = schedule.CancelOther
		putSchedule(t, a.Sys.Node(), "minutely", spec)
		servicetest.Idle(time.Minute + time.Second)
		run := w.TakeOne()
		f.Reshard(a, "mail", 5)
		servicetest.Idle(30 * time.Second)
		w.TakeCancels()
		servicetest.Idle(30 * time.Second)
		asks := w.TakeCancels()
		if len(asks) != 1 || asks[0].ID != run.Task.ID {
			t.Fatalf("at the next run the worker is asked to end %+v, and has %s", asks, run.Task.ID)
		}
		w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleAck, ID: run.Task.ID, Token: run.Token}})
		servicetest.Idle(time.Second)
		if next := w.TakeOne(); next.Task.RunOf == nil || next.Task.RunOf.Occurrence == run.Task.RunOf.Occurrence {
			t.Errorf("after it comes %+v", next.Task)
		}
	})
}

// TestAScheduleIsRefused by a topic that takes no tasks, and goes on when it does.
func TestAScheduleIsRefused(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		start := time.Now().Truncate(time.Millisecond)
		spec := everySpec(time.Minute)
		spec.Grace = 20 * time.Second
		sched := putSchedule(t, s.Node(), "often", spec)
		change := func(c service.TopicChange) {
			if _, err := s.Topics.Configure(t.Context(), "mail", c); err != nil {
				t.Fatal(err)
			}
		}
		at := func(d time.Duration) { servicetest.Idle(time.Until(start.Add(d))) }
		at(30 * time.Second)
		change(service.TopicChange{EnqueuePaused: new(true)})
		at(75 * time.Second)
		change(service.TopicChange{EnqueuePaused: new(false)})
		at(90 * time.Second)
		if got := runsOf(t, w, start); !slices.Equal(got, []time.Duration{time.Minute}) || firstAt(w).Sub(start) < 75*time.Second {
			t.Errorf("paused for 15 s: runs of %v at %v", got, firstAt(w).Sub(start))
		}
		w.Sub.Settle(1, nil)
		change(service.TopicChange{MaxBacklog: new(3)})
		for range 3 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", "", time.Hour))
		}
		sched.does(schedule.Ended{ID: sched.read().ID(sched.read().Open[0].Occurrence), Outcome: schedule.Done, At: 1})
		at(2*time.Minute + 21500*time.Millisecond)
		change(service.TopicChange{MaxBacklog: new(100)})
		at(2*time.Minute + 50*time.Second)
		if got := sched.read(); got.Skipped[schedule.Refused] != 1 {
			t.Errorf("with a full backlog it skips %v", got.Skipped)
		}
		at(3*time.Minute + time.Second)
		if got := runsOf(t, w, start); !slices.Contains(got, 3*time.Minute) {
			t.Errorf("then there are runs of %v", got)
		}
	})
}

// TestAUserKnowsWhichRunsHaveEnded asks for a run while the owner of the shard has not heard
// of the end of the one before.
func TestAUserKnowsWhichRunsHaveEnded(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		owner, other, w := besideOwner(t, f, everySpec(time.Hour))
		trigger := func(request string) error {
			_, err := other.Sys.Schedules.Trigger(t.Context(), schedules.Trigger{Topic: "mail", Name: "nightly", Overlap: schedule.Skip, Request: request})
			return err
		}
		if err := trigger("first"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(900 * time.Millisecond)
		if err := trigger("meanwhile"); !isRunOpen(err) {
			t.Errorf("while the run is open: %v", err)
		}
		owner.Store.Freeze(true)
		time.Sleep(200 * time.Millisecond)
		if err := trigger("second"); err != nil {
			t.Errorf("after its end: %v", err)
		}
		owner.Store.Freeze(false)
		time.Sleep(5 * time.Second)
		w.mu.Lock()
		if len(w.got) != 2 {
			t.Errorf("%d runs were delivered, want 2", len(w.got))
		}
		w.mu.Unlock()
		w.stop()
	})
}

// TestAUserKnowsWhichRunsOfBeforeAReshardHaveEnded does the same when the schedule has moved, and the shard
// that it came from has not sent the end on.
func TestAUserKnowsWhichRunsOfBeforeAReshardHaveEnded(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		owner, other, w := besideOwner(t, f, everySpec(time.Hour))
		w.takes(10 * time.Second)
		trigger := func(request string) error {
			_, err := other.Sys.Schedules.Trigger(t.Context(), schedules.Trigger{Topic: "mail", Name: "nightly", Overlap: schedule.Skip, Request: request})
			return err
		}
		if err := trigger("first"); err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		f.Reshard(other, "mail", 1)
		time.Sleep(time.Until(asked.Add(9900 * time.Millisecond)))
		if err := trigger("meanwhile"); !isRunOpen(err) {
			t.Errorf("while the run is open: %v", err)
		}
		owner.Store.Freeze(true)
		time.Sleep(200 * time.Millisecond)
		if err := trigger("second"); err != nil {
			t.Errorf("after its end: %v", err)
		}
		owner.Store.Freeze(false)
		time.Sleep(time.Second)
		w.stop()
	})
}

// besideOwner makes a topic of one shard with a schedule, whose runs take a second at a worker
// of the node that does not own the shard.
func besideOwner(t *testing.T, f *servicetest.Fleet, spec schedule.Spec) (owner, other *servicetest.Node, w *diligent) {
	t.Helper()
	a, b := f.Nodes["a"], f.Nodes["b"]
	topic := a.Sys.Node().Topics().New("mail")
	topic.Shards = 1
	if _, err := a.Sys.Node().Topics().Create(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	putSchedule(t, a.Sys.Node(), "nightly", spec)
	w = &diligent{runs: map[string]*time.Timer{}, got: map[string]int{}, at: map[string]time.Time{}}
	w.last = func(*store.RunOf) time.Duration { return time.Second }
	owner, other = a, b
	if time.Sleep(time.Second); f.Owners("mail")[0] == "b" {
		owner, other = b, a
	}
	var err error
	if w.sub, err = other.Sys.Delivery.Subscribe(t.Context(), subscription.Options{Topic: "mail", Worker: "w"}, w); err != nil {
		t.Fatal(err)
	}
	if err := w.sub.Grant(10); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	return owner, other, w
}

func isRunOpen(err error) bool { return isReason(err, "RUN_OPEN") }

func isReason(err error, reason string) bool {
	var p *problem.Error
	return errors.As(err, &p) && p.Reason == reason
}

// TestARefusedTriggerKeepsWhatItNames asks for a run while the owner of the shard has heard neither of the end of
// a run nor of the time that came behind it. The refusal names the run of that time: it is made by then, and does not
// hang on an owner who may find the time missed when it comes back.
func TestARefusedTriggerKeepsWhatItNames(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		spec := everySpec(time.Minute)
		spec.CatchUp = schedule.None
		spec.Template.Task.Visibility = 5 * time.Minute
		start := time.Now()
		owner, other, w := besideOwner(t, f, spec)
		w.takes(59500 * time.Millisecond)
		time.Sleep(time.Until(start.Add(119 * time.Second))) // the first run ends in half a second
		owner.Store.Freeze(true)
		time.Sleep(1500 * time.Millisecond)
		all := other.Sys.Schedules
		_, err := all.Trigger(t.Context(), schedules.Trigger{Topic: "mail", Name: "nightly", Overlap: schedule.Skip})
		var refused *problem.Error
		if !errors.As(err, &refused) || refused.Reason != "RUN_OPEN" {
			t.Fatalf("behind the second time: %v", err)
		}
		is, err := all.Get(t.Context(), "mail", "nightly")
		if err != nil || len(is.Open) != 1 || is.RunID(is.Open[0]) != refused.ID || is.Totals[schedule.Done] != 1 {
			t.Errorf("the trigger was refused because of %s; open are %v, and ended %v: %v", refused.ID, is.Open, is.Totals, err)
		}
		owner.Store.Freeze(false)
		time.Sleep(5 * time.Second)
		w.mu.Lock()
		if w.got[refused.ID] != 1 {
			t.Errorf("the run that the refusal names was delivered %d times", w.got[refused.ID])
		}
		w.mu.Unlock()
		w.stop()
	})
}

// TestAUserKnowsThatAScheduleIsFinished asks for changes while the owner of the shard has not
// heard of the end of the last run: a pause that was answered OK, and did nothing, would let the
// schedule run after an edit.
func TestAUserKnowsThatAScheduleIsFinished(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		spec := everySpec(time.Minute)
		spec.Timetable.End = time.Now().Add(90 * time.Second)
		owner, other, w := besideOwner(t, f, spec)
		time.Sleep(time.Minute - 1500*time.Millisecond) // the only run has begun
		owner.Store.Freeze(true)
		time.Sleep(time.Second)
		all := other.Sys.Schedules
		_, pause := all.Pause(t.Context(), "mail", "nightly", "ada", "")
		_, trigger := all.Trigger(t.Context(), schedules.Trigger{Topic: "mail", Name: "nightly"})
		for what, err := range map[string]error{"pause": pause, "trigger": trigger} {
			if !isReason(err, "SCHEDULE_FINISHED") {
				t.Errorf("%s after the end of the last run: %v", what, err)
			}
		}
		if is, err := all.Get(t.Context(), "mail", "nightly"); err != nil || is.Phase != schedule.Finished || len(is.Open) > 0 {
			t.Errorf("the schedule that is said to be finished is in phase %v, open are %v: %v", is.Phase, is.Open, err)
		}
		owner.Store.Freeze(false)
		time.Sleep(5 * time.Second)
		w.stop()
	})
}

// TestEndsAreHeardAfterTheStoreWasSetBack undoes ends of runs, as a failover does. Those that
// come after that have the numbers of parcels which their owner has taken.
func TestEndsAreHeardAfterTheStoreWasSetBack(t *testing.T) {
	for behind := range 6 {
		servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
			s := f.Nodes["a"].Sys
			topic := s.Node().Topics().New("mail")
			topic.Shards, topic.Visibility = 1, time.Second
			if _, err := s.Node().Topics().Create(t.Context(), topic); err != nil {
				t.Fatal(err)
			}
			w := &diligent{runs: map[string]*time.Timer{}, got: map[string]int{}, at: map[string]time.Time{}}
			w.last = func(*store.RunOf) time.Duration { return 300 * time.Millisecond }
			start := time.Now()
			var all []*scheduled
			for i := range 5 {
				spec := everySpec(2 * time.Second)
				spec.Template.Task.MaxRetries = 5
				spec.Timetable.Start = start.Add(time.Second + 100*time.Millisecond*time.Duration(i))
				all = append(all, putSchedule(t, s.Node(), fmt.Sprint("often", i), spec))
			}
			var err error
			if w.sub, err = s.Delivery.Subscribe(t.Context(), subscription.Options{Topic: "mail", Worker: "w"}, w); err != nil {
				t.Fatal(err)
			}
			if err := w.sub.Grant(100); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(start.Add(7*time.Second + 350*time.Millisecond + 100*time.Millisecond*time.Duration(behind))))
			was := f.Store.Clone()
			time.Sleep(time.Until(start.Add(9*time.Second + 250*time.Millisecond + 150*time.Millisecond*time.Duration(behind))))
			f.Store.Restore(was)
			time.Sleep(40 * time.Second)
			for _, one := range all {
				if got := one.read(); got.Made < 20 || len(got.Open) > 1 {
					t.Errorf("%d: 40 s later %s has made %d runs, of which %d are open", behind, one.name, got.Made, len(got.Open))
				}
			}
			w.stop()
		})
	}
}
