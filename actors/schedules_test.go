package actors_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
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
