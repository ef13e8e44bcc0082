package schedules_test

import (
	"context"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
	"github.com/ddq-io/ddq/timer/timetable"
)

type cells = store.Cells // which has a method of that name

// movingCells are cells in which a schedule takes the next step of its way to another shard before each
// read, after some.
type movingCells struct {
	cells
	t     *testing.T
	wait  int
	steps []func()
}

func (m *movingCells) move() {
	m.wait--
	if m.wait < 0 && len(m.steps) > 0 {
		m.steps[0]()
		m.steps = m.steps[1:]
	}
}

func (m *movingCells) CellPage(ctx context.Context, s store.Shard, kind byte, cursor string, limit int) ([]store.Cell, string, error) {
	m.move()
	return m.cells.CellPage(ctx, s, kind, cursor, limit)
}

func (m *movingCells) Parcels(ctx context.Context, s store.Shard, box store.Box, after int64, limit int) ([]store.Parcel, error) {
	m.move()
	return m.cells.Parcels(ctx, s, box, after, limit)
}

func (m *movingCells) commit(n int, c store.Commit) {
	m.t.Helper()
	_, results, err := m.Commit(m.t.Context(), store.Shard{Topic: "t", N: n}, nil, []store.Commit{c})
	if err != nil || results[0].Status != store.OK {
		m.t.Fatalf("commit to shard %d: %+v, %v", n, results, err)
	}
}

// TestScheduleOfAnAudienceIsFoundWhileItMoves has one move from a shard of before a reshard while it is looked for.
func TestScheduleOfAnAudienceIsFoundWhileItMoves(t *testing.T) {
	topic := store.Topic{Name: "t", Shards: 1, First: 1, Former: [store.MaxFormer]store.Span{{First: 0, Shards: 1}}}
	body, err := schedule.Encode(&schedule.Schedule{Name: "s", Life: 1, Phase: schedule.Active, Spec: schedule.Spec{
		Timetable: timetable.Spec{Entries: []timetable.Entry{{Every: time.Hour}}},
		Overlap:   schedule.Allow, CatchUp: schedule.Last, Audience: &schedule.Target{Name: "users"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for wait := range 8 {
		st := memstore.New()
		t.Cleanup(func() { st.Close() })
		m := &movingCells{cells: st, t: t, wait: wait}
		cell := store.Cell{ID: schedule.CellID("s"), Body: body}
		m.commit(0, store.Commit{Puts: []store.Put{{Cell: cell}}})
		cell.Version = 1
		leaves, err := schedule.MoveOut(schedule.Look{Cell: cell, Topic: &topic}, schedule.Env{})
		if err != nil {
			t.Fatal(err)
		}
		arrives := leaves.Send[0]
		arrives.Topic = ""
		m.steps = []func(){
			func() { m.commit(0, leaves) },
			func() {
				m.commit(1, store.Commit{Send: []store.Parcel{arrives}})
				m.commit(0, store.Commit{Drop: []int64{1}})
			},
			func() {
				m.commit(1, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: cell.ID, Body: body}}}, Take: 1})
			},
		}
		topics := func(context.Context, string) ([]store.Topic, *problem.Error) { return []store.Topic{topic}, nil }
		users := schedules.Users{Cells: m, Topics: topics}
		if found, err := users.Find(t.Context(), "users"); err != nil || found != "t/s" {
			t.Errorf("it leaves after %d reads: found %q, %v", wait, found, err)
		}
	}
}
