package schedule

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// TestKeep looks at a cell as its owner does.
func TestKeep(t *testing.T) {
	start := store.Millis(time.Date(2030, 6, 1, 8, 0, 0, 0, time.UTC).UnixMilli())
	s := &Schedule{
		Spec: Spec{
			Timetable: timetable.Spec{Entries: []timetable.Entry{{Every: 10 * time.Second}}}, Overlap: Skip, CatchUp: Last, Grace: time.Minute,
		},
		Name: "s", Life: 3, Phase: Active, Anchor: start, Decided: start,
	}
	body, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	cell := store.Cell{ID: CellID("s"), Version: 4, List: List, Body: body}
	topic := &store.Topic{Name: "mail"}
	keep := func(l Look, now store.Millis) Kept {
		t.Helper()
		l.Topic = topic
		k, err := Keep(l, Env{Now: now, Lead: Lead})
		if err != nil {
			t.Fatal(err)
		}
		if len(k.Commit.Puts) == 1 && k.Commit.Puts[0].If != l.Cell.Version {
			t.Errorf("the commit is %+v", k.Commit)
		}
		return k
	}
	after := func(k Kept) store.Cell {
		c := k.Commit.Puts[0].Cell
		c.Version = k.Commit.Puts[0].If + 1
		return c
	}

	made := keep(Look{Cell: cell}, start.Add(5*time.Second))
	if len(made.Commit.Adds) != 1 || made.Wake != start.Add(20*time.Second) {
		t.Fatalf("it becomes %+v", made)
	}
	run := made.Commit.Adds[0].ID
	if again := keep(Look{Cell: after(made)}, start.Add(6*time.Second)); len(again.Commit.Puts) != 0 {
		t.Errorf("with nothing to do it becomes %+v", again.Commit)
	}

	ended := store.Parcel{Number: 7, To: cell.ID, At: start.Add(11 * time.Second), Ended: &store.Ended{ID: run, Kind: store.ChangeDone}}
	told := keep(Look{Cell: after(made), Parcels: []store.Parcel{ended}}, start.Add(11*time.Second))
	if told.Schedule.Totals[Done] != 1 || told.Schedule.Taken != 7 || told.Wake != start.Add(15*time.Second) {
		t.Errorf("told, it becomes %+v", told.Schedule)
	}
	if twice := keep(Look{Cell: after(told), Parcels: []store.Parcel{ended}}, start.Add(12*time.Second)); len(twice.Commit.Puts) != 0 {
		t.Errorf("told twice, it becomes %+v", twice.Schedule)
	}

	requeued := store.Parcel{Number: 6, To: cell.ID, At: start.Add(11 * time.Second), Ended: &store.Ended{ID: run, Kind: store.ChangeRequeued}}
	late := keep(Look{Cell: after(made), Parcels: []store.Parcel{requeued, ended}}, start.Add(25*time.Second))
	if late.Schedule.Totals[Done] != 1 || len(late.Schedule.Skipped) != 0 || len(late.Commit.Adds) != 1 {
		t.Errorf("told of several things after a while, it becomes %+v", late.Schedule)
	}

	alien := keep(Look{Cell: cell, Alien: []string{run}}, start.Add(5*time.Second))
	if len(alien.Commit.Adds) != 0 || len(alien.Schedule.Open) != 0 || alien.Schedule.Totals[Removed] != 1 {
		t.Errorf("with the id of another task it becomes %+v", alien.Schedule)
	}
	begun := keep(Look{Cell: after(made), Begun: []string{run}}, start.Add(6*time.Second))
	if !begun.Schedule.Open[0].Begun {
		t.Errorf("when the run has begun it becomes %+v", begun.Schedule)
	}
	if gone := keep(Look{Cell: store.Cell{ID: cell.ID}, Parcels: []store.Parcel{ended}}, start); len(gone.Commit.Puts) != 0 {
		t.Errorf("without a cell there is %+v", gone.Commit)
	}
}

// TestUnreadableCellsArePutAside keeps them from waking, and as they are.
func TestUnreadableCellsArePutAside(t *testing.T) {
	never, err := Encode(&Schedule{Spec: Spec{Overlap: Skip, CatchUp: Last}, Name: "s", Phase: Active})
	if err != nil {
		t.Fatal(err)
	}
	for what, body := range map[string][]byte{"no record": []byte("\xff"), "no timetable": never} {
		k, err := Keep(Look{Cell: store.Cell{ID: CellID("s"), Version: 2, Wake: 1, List: List, Body: body}}, Env{Now: 5})
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s: the error is %v", what, err)
		}
		if put := k.Commit.Puts[0]; put.Wake != 0 || put.List != CorruptList || put.If != 2 || !slices.Equal(put.Body, body) {
			t.Errorf("%s: it becomes %+v", what, put)
		}
	}
}
