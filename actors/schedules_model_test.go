package actors_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
	"github.com/ddq-io/ddq/timer/timetable"
)

var (
	modelSchedules = flag.Int("schedules.n", 150, "how many schedules TestSchedulesGoAsTheirModels has")
	modelHours     = flag.Int("schedules.hours", 1, "for how many hours")
)

// lasts is how long the worker is at a run: one in four is still at it when the next
// occurrence comes.
func lasts(of *store.RunOf, every time.Duration) time.Duration {
	h := fnv.New32a()
	fmt.Fprint(h, of.Schedule, of.Occurrence)
	if h.Sum32()%4 == 0 {
		return every * 163 / 100
	}
	return every * 21 / 100
}

// modelled is a schedule with what becomes of it by the pure rules alone.
type modelled struct {
	*schedule.Schedule
	table *timetable.Timetable
	wake  store.Millis
	ends  map[string]store.Millis // of runs
	made  map[string]store.Millis // when they are due
	close bool                    // an end is so close to an occurrence that either may be first
}

const closeBy = 3 * time.Second

// playUntil plays the schedule to a moment.
func (m *modelled) playUntil(end store.Millis) {
	for {
		at, id := m.wake, ""
		for run, ends := range m.ends {
			if at == 0 || ends < at || ends == at && run < id {
				at, id = ends, run
			}
		}
		if at == 0 || at > end {
			return
		}
		var e schedule.Event
		if id != "" {
			delete(m.ends, id)
			e = schedule.Ended{ID: id, Outcome: schedule.Done, At: at}
			m.noteClose(at)
		}
		m.step(at, e)
	}
}

// noteClose notes that an end may come before or behind an occurrence.
func (m *modelled) noteClose(at store.Millis) {
	if next, ok := m.table.Next(at.Add(-closeBy).Time()); ok && store.Millis(next.UnixMilli()) < at.Add(closeBy) {
		m.close = true
	}
}

func (m *modelled) step(at store.Millis, e schedule.Event) {
	next, out := schedule.Step(m.Schedule, e, schedule.Env{Now: at, Lead: schedule.Lead, Table: m.table})
	if len(out.Doubt) > 0 {
		next, out = schedule.StepAll(m.Schedule, []schedule.Event{e, schedule.Watched{}}, schedule.Env{Now: at, Lead: schedule.Lead, Table: m.table})
	}
	m.Schedule, m.wake = next, out.Wake
	for _, run := range out.Make {
		m.made[run.ID] = run.Due
		m.ends[run.ID] = run.Due.Add(lasts(&store.RunOf{Schedule: m.Name, Occurrence: run.At}, m.Timetable.Entries[0].Every))
	}
	for _, id := range out.Cancel {
		if _, runs := m.ends[id]; runs {
			m.ends[id] = at
		}
	}
}

// diligent is a worker that is at each run for as long as it lasts, or until it is asked to
// end.
type diligent struct {
	mu   sync.Mutex
	sub  *service.Subscription
	runs map[string]*time.Timer
	got  map[string]int
	at   map[string]time.Time
	last func(*store.RunOf) time.Duration
}

// takes is how long the worker is at each run that comes from now on.
func (w *diligent) takes(long time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = func(*store.RunOf) time.Duration { return long }
}

func (w *diligent) Deliver(ds []subscription.Delivery) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range ds {
		if w.got[d.Task.ID]++; w.got[d.Task.ID] == 1 {
			w.at[d.Task.ID] = time.Now()
		}
		// By the due time, so that what is late is not late for ever.
		w.runs[d.Task.ID] = time.AfterFunc(time.Until(d.Task.Due.Time().Add(w.last(d.Task.RunOf))), func() {
			w.sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}})
		})
	}
	return true
}

func (w *diligent) Settled(_ uint64, results []subscription.Settled) { _ = w.sub.Grant(len(results)) }

func (w *diligent) Cancel(asks []subscription.CancelAsk) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ask := range asks {
		if run := w.runs[ask.ID]; run != nil {
			run.Reset(0)
		}
	}
}

// stop has the worker finish nothing more.
func (w *diligent) stop() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, run := range w.runs {
		run.Stop()
	}
}

func (w *diligent) Demand(int, int)     {}
func (w *diligent) NodesChanged()       {}
func (w *diligent) Drain(time.Duration) {}

// TestSchedulesGoAsTheirModels has the owners of all shards change each minute.
// Each schedule makes the runs and the skips that the pure rules say, id for id.
func TestSchedulesGoAsTheirModels(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		p := newPlay(t, f, dose(*modelSchedules))
		for minute := range *modelHours * 60 {
			f.Nodes["a"].SetDraining(minute%2 == 0)
			f.Nodes["b"].SetDraining(minute%2 == 1)
			time.Sleep(time.Minute)
			want := []string{"a", "b"}[(minute+1)%2]
			if owners := f.Owners("mail"); slices.ContainsFunc(owners, func(owner string) bool { return owner != want }) {
				t.Fatalf("in minute %d the owners are %v", minute, owners)
			}
		}
		p.compare()
	})
}

// TestSchedulesMoveWithAReshard gives their topic other shards, twice. The former shards are
// retired, once the runs that were open have ended and were told.
func TestSchedulesMoveWithAReshard(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		p := newPlay(t, f, dose(60))
		a := f.Nodes["a"]
		time.Sleep(40 * time.Minute)
		f.Reshard(a, "mail", 5)
		time.Sleep(10 * time.Minute)
		f.Reshard(a, "mail", 17)
		time.Sleep(70 * time.Minute)
		p.compare()
		topic := a.Config("mail")
		if place.Resharding(&topic) {
			t.Errorf("the topic has former shards: %+v", topic.Former)
		}
	})
}

// play is a fleet with schedules and a worker.
type play struct {
	*testing.T
	fleet  *servicetest.Fleet
	worker *diligent
	models []*modelled
}

func newPlay(t *testing.T, f *servicetest.Fleet, n int) *play {
	a := f.Nodes["a"].Sys
	if _, err := a.Node().Topics().Create(t.Context(), longVisible(a)); err != nil {
		t.Fatal(err)
	}
	every := make(map[string]time.Duration)
	w := &diligent{runs: map[string]*time.Timer{}, got: map[string]int{}, at: map[string]time.Time{}}
	w.last = func(of *store.RunOf) time.Duration { return lasts(of, every[of.Schedule]) }
	p := &play{T: t, fleet: f, worker: w}
	for i := range n {
		spec := everySpec(5*time.Minute + time.Duration(i%997)*time.Second)
		spec.Overlap, spec.History = schedule.Overlap(i%5+1), i%20
		name := fmt.Sprintf("s%d", i)
		every[name] = spec.Timetable.Entries[0].Every
		s := putSchedule(t, a.Node(), name, spec)
		m := &modelled{Schedule: s.read(), wake: s.cell().Wake, ends: map[string]store.Millis{}, made: map[string]store.Millis{}}
		m.table, _ = m.Table()
		p.models = append(p.models, m)
		if i%50 == 0 {
			time.Sleep(317 * time.Millisecond)
		}
	}
	var err error
	if w.sub, err = a.Delivery.Subscribe(t.Context(), subscription.Options{Topic: "mail", Worker: "w", MaxInFlight: 10_000}, w); err != nil {
		t.Fatal(err)
	}
	if err := w.sub.Grant(10_000); err != nil {
		t.Fatal(err)
	}
	return p
}

// compare ends the play, and compares what became of the schedules with their models.
func (p *play) compare() {
	p.Helper()
	p.worker.stop()
	now, compared := store.Millis(time.Now().UnixMilli()), 0
	for _, m := range p.models {
		m.playUntil(now.Add(-closeBy))
		before := fmt.Sprint(m.Schedule)
		m.playUntil(now.Add(closeBy))
		if m.close || fmt.Sprint(m.Schedule) != before { // or something of it is just about to happen
			continue
		}
		compared++
		s := scheduled{p.T, p.fleet.Nodes["a"].Sys.Node(), m.Name}
		compareWithModel(p.T, m, s.read(), p.worker, now)
	}
	late := slices.Sorted(maps.Values(lateness(p.models, p.worker)))
	p.Logf("%d of %d schedules compared, %d runs, the latest by %v", compared, len(p.models), len(p.worker.got), late[len(late)-1])
	if compared < len(p.models)/2 {
		p.Error("too few were compared")
	}
}

// longVisible is the topic mail, whose tasks are held for hours.
func longVisible(s *service.Service) store.Topic {
	topic := s.Node().Topics().New("mail")
	topic.Visibility = 12 * time.Hour
	return topic
}

func compareWithModel(t *testing.T, m *modelled, got *schedule.Schedule, w *diligent, now store.Millis) {
	t.Helper()
	if got.Made != m.Made || !maps.Equal(got.Totals, m.Totals) || !maps.Equal(got.Skipped, m.Skipped) {
		t.Errorf("%s: made %d, ended %v, skipped %v; by its model made %d, ended %v, skipped %v", m.Name, got.Made, got.Totals, got.Skipped, m.Made, m.Totals, m.Skipped)
	}
	for id, due := range m.made {
		if due < now.Add(-closeBy) && w.got[id] != 1 {
			t.Errorf("%s: run %s of its model was delivered %d times", m.Name, id, w.got[id])
		}
	}
}

func lateness(models []*modelled, w *diligent) map[string]time.Duration {
	late := make(map[string]time.Duration)
	for _, m := range models {
		for id, due := range m.made {
			if at, there := w.at[id]; there && !m.close {
				late[id] = at.Sub(due.Time())
			}
		}
	}
	return late
}
