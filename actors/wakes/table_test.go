package wakes_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/wakes"
	"github.com/ddq-io/ddq/store"
)

var (
	mail  = store.Shard{Topic: "mail", N: 1}
	began = time.UnixMilli(1_000_000)
)

const tomorrow = store.Millis(1_000_000 + 24*3600*1000)

// one are the numbers of a shard with one task.
func one() store.Stats {
	return store.Stats{Stamp: store.Stamp{Now: began, Seq: 7, Server: 3}, Pending: 1}
}

func TestWakeOfAShardThatNobodyLookedAt(t *testing.T) {
	var table wakes.Table
	tests := map[string]struct {
		change func(*store.Stats)
		want   store.Millis
		known  bool
	}{
		"it has a task":      {func(*store.Stats) {}, 0, false},
		"it is empty":        {func(st *store.Stats) { st.Pending = 0 }, wakes.Never, true},
		"dead and done ones": {func(st *store.Stats) { st.Pending, st.Done, st.Dead = 0, 1, 1 }, wakes.Never, true},
		"a task runs":        {func(st *store.Stats) { st.Running = 1 }, 0, true},
		"it has a parcel":    {func(st *store.Stats) { st.Parcels = 1 }, 0, true},
		"the store said it":  {func(st *store.Stats) { st.OldestMs = tomorrow }, tomorrow, true},
		"it has both":        {func(st *store.Stats) { st.OldestMs, st.Cells = tomorrow, 1 }, 0, false},
		"it has a cell":      {func(st *store.Stats) { st.Pending, st.Cells = 0, 1 }, 0, false},
	}
	for name, test := range tests {
		st := one()
		test.change(&st)
		if got, known := table.Wake(mail, &st); got != test.want || known != test.known {
			t.Errorf("%s: %d, %v; want %d, %v", name, got, known, test.want, test.known)
		}
	}
}

func TestWakeCountsWhileTheNumbersAreTheSame(t *testing.T) {
	tests := map[string]struct {
		change func(*store.Stats)
		known  bool
	}{
		"nothing happened":         {func(*store.Stats) {}, true},
		"nine minutes":             {func(st *store.Stats) { st.Now = st.Now.Add(9 * time.Minute) }, true},
		"ten minutes":              {func(st *store.Stats) { st.Now = st.Now.Add(10 * time.Minute) }, false},
		"the clock was set back":   {func(st *store.Stats) { st.Now = st.Now.Add(-time.Second) }, false},
		"a task became pending":    {func(st *store.Stats) { st.Seq++ }, false},
		"the store was set back":   {func(st *store.Stats) { st.Seq-- }, false},
		"an ack was undone":        {func(st *store.Stats) { st.Pending++ }, false},
		"another server answers":   {func(st *store.Stats) { st.Server++ }, false},
		"a cell came":              {func(st *store.Stats) { st.Cells++ }, false},
		"it is of a later topic":   {func(st *store.Stats) { st.Life.Topic++ }, false},
		"a task runs":              {func(st *store.Stats) { st.Running++ }, true},
		"a dead letter is of none": {func(st *store.Stats) { st.Dead++ }, true},
	}
	for name, test := range tests {
		var table wakes.Table
		st := one()
		table.Learn(mail, &st, tomorrow)
		test.change(&st)
		if _, known := table.Wake(mail, &st); known != test.known {
			t.Errorf("%s: known %v, want %v", name, known, test.known)
		}
	}
}

// A commit of another node may have a cell wake earlier, and raises no number.
func TestWakeOfCellsCountsForLessThanAMinute(t *testing.T) {
	var table wakes.Table
	st := one()
	st.Pending, st.Cells = 0, 1
	table.Learn(mail, &st, tomorrow)
	for _, test := range []struct {
		after time.Duration
		known bool
	}{{44 * time.Second, true}, {45 * time.Second, false}} {
		st.Now = began.Add(test.after)
		if _, known := table.Wake(mail, &st); known != test.known {
			t.Errorf("after %v: known %v, want %v", test.after, known, test.known)
		}
	}
}

func TestTableKeepsWhatThereIs(t *testing.T) {
	var table wakes.Table
	st := one()
	sms := store.Shard{Topic: "sms"}
	table.Learn(mail, &st, tomorrow)
	table.Learn(sms, &st, tomorrow)
	table.Keep([]store.Shard{sms})
	if _, known := table.Wake(mail, &st); known {
		t.Error("a shard is known that is none of those to keep")
	}
	if at, known := table.Wake(sms, &st); !known || at != tomorrow {
		t.Errorf("%d, %v; want %d", at, known, tomorrow)
	}
}
