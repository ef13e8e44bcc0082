package schedule

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// keeper is an owner that steps a schedule when it wakes, and whose runs last for a while. It keeps what
// became of each occurrence.
type keeper struct {
	*rapid.T
	s      *Schedule
	table  *timetable.Timetable
	off    func(time.Time) bool
	now    store.Millis
	wake   store.Millis
	lasts  time.Duration
	due    map[string]store.Millis     // of the tasks that are pending
	begun  map[string]store.Millis     // and of those that a worker has
	became map[store.Millis]string     // by occurrence
	told   []Ended                     // of what was taken back
	fates  map[store.Millis]([]string) // in order, for what fails
}

func newKeeper(t *rapid.T, spec Spec, off func(time.Time) bool, now store.Millis, lasts time.Duration) *keeper {
	k := &keeper{
		T: t, off: off, now: now, lasts: lasts,
		due: make(map[string]store.Millis), begun: make(map[string]store.Millis), became: make(map[store.Millis]string), fates: make(map[store.Millis][]string),
	}
	k.s = &Schedule{Spec: spec, Name: "s", Life: 1, Phase: Active, Created: now, Anchor: now, Decided: now}
	var err error
	if k.table, err = k.s.Table(); err != nil {
		t.Fatal(err)
	}
	k.step(nil)
	return k
}

func (k *keeper) step(e Event) {
	out := k.try(e)
	for out.Behind {
		out = k.try(e)
	}
}

func (k *keeper) try(e Event) Effects {
	s, out := StepAll(k.s, []Event{e, Watched{}}, Env{Now: k.now, Lead: Lead, Table: k.table, Excluded: k.off})
	for _, r := range out.Remove {
		if due, pending := k.due[r.ID]; !pending || due != r.Due {
			k.try(Begun{ID: r.ID})
			return k.try(e)
		}
	}
	k.s, k.wake = s, out.Wake
	if edit, ok := e.(Edit); ok && !out.Behind {
		k.off = edit.Excluded
		k.table, _ = s.Table()
	}
	for _, r := range out.Remove {
		id := r.ID
		delete(k.due, id)
		for at, fate := range k.became {
			if fate == "run" && s.ID(Occurrence{At: at, Origin: ByTimetable}) == id {
				k.note(at, "")
			}
		}
		k.told = append(k.told, Ended{ID: id, Outcome: Removed, At: k.now})
	}
	for _, m := range out.Make {
		k.note(m.At, "run")
		k.due[m.ID] = m.Due
	}
	for at, ok := k.table.Next(k.now.Add(-time.Hour).Time()); ok && len(out.Skips) > 0 && store.Millis(at.UnixMilli()) <= s.Decided; at, ok = k.table.Next(at) {
		for _, skip := range out.Skips {
			if skip.At == store.Millis(at.UnixMilli()) {
				k.note(skip.At, skip.Reason.String())
			}
		}
	}
	return out
}

func (k *keeper) note(at store.Millis, fate string) {
	k.fates[at] = append(k.fates[at], fmt.Sprintf("%q at %s", fate, clock(k.now)))
	if k.became[at] = fate; fate == "" {
		delete(k.became, at)
	}
}

// sleep goes on until a moment: workers take runs when they are due, and finish them.
func (k *keeper) sleep(until store.Millis) {
	for {
		at, e := store.Millis(store.MaxDue), Event(nil)
		if k.wake != 0 {
			at = max(k.now, k.wake)
		}
		taken := ""
		for _, id := range slices.Sorted(maps.Keys(k.due)) {
			if due := max(k.now, k.due[id]); due <= at {
				at, taken = due, id
			}
		}
		for _, id := range slices.Sorted(maps.Keys(k.begun)) {
			if end := k.begun[id].Add(k.lasts); end < at {
				at, taken, e = end, "", Ended{ID: id, Outcome: Done, At: end, Started: k.begun[id]}
			}
		}
		if at > until {
			k.now = until
			return
		}
		switch k.now = max(k.now, at); {
		case taken != "":
			k.begun[taken] = k.now
			delete(k.due, taken)
			continue
		case len(k.told) > 0:
			k.step(k.told[0])
			k.told = k.told[1:]
			continue
		case e != nil:
			delete(k.begun, e.(Ended).ID)
		}
		k.step(e)
	}
}

// behind are what became of the occurrences behind a moment, up to another one.
func (k *keeper) behind(from, to store.Millis) string {
	var list []string
	for _, at := range slices.Sorted(maps.Keys(k.became)) {
		if at > from && at <= to {
			list = append(list, clock(at)+" "+k.became[at])
		}
	}
	return fmt.Sprint(list)
}

var metamorphicStart = store.Millis(time.Date(2030, 6, 1, 8, 0, 0, 0, time.UTC).UnixMilli())

func drawSpec(t *rapid.T) Spec {
	entry := rapid.SampledFrom([]timetable.Entry{
		{Cron: "*/7 * * * * *"}, {Cron: "0 * * * * *"}, {Cron: "*/20 * * * * *"}, {Every: 11 * time.Second}, {Every: 13 * time.Second, FromEnd: true},
	}).Draw(t, "entry")
	return Spec{
		Timetable: timetable.Spec{Entries: []timetable.Entry{entry}},
		Calendars: []string{rapid.SampledFrom([]string{"", "even", "third"}).Draw(t, "calendar")},
		Jitter:    time.Duration(rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "jitter")) * time.Second,
		Overlap:   Overlap(rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(t, "overlap")),
		CatchUp:   Last, Grace: time.Minute, History: 10,
	}
}

// off is what the calendar of a spec leaves out.
func off(s Spec) func(time.Time) bool {
	switch s.Calendars[0] {
	case "even":
		return func(at time.Time) bool { return at.Second()%2 == 0 }
	case "third":
		return func(at time.Time) bool { return at.Second()%3 == 0 }
	}
	return nil
}

func instants(t *rapid.T, n int) (list []store.Millis) {
	now := metamorphicStart
	for range n {
		now = now.Add(time.Duration(rapid.Int64Range(1, 40_000).Draw(t, "pause")) * time.Millisecond)
		list = append(list, now)
	}
	return list
}

// TestWhatChangesNothingChangesNoRun compares a schedule with one that is put again, has a label changed,
// and is paused for no time.
func TestWhatChangesNothingChangesNoRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, lasts := drawSpec(t), time.Duration(rapid.SampledFrom([]int{0, 2, 30}).Draw(t, "lasts"))*time.Second
		a, b := newKeeper(t, spec, off(spec), metamorphicStart, lasts), newKeeper(t, spec, off(spec), metamorphicStart, lasts)
		for i, at := range instants(t, 8) {
			a.sleep(at)
			b.sleep(at)
			edited := b.s.Spec
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				edited.Labels = []store.Attribute{{Key: "n", Value: fmt.Sprint(i)}}
				b.step(Edit{Spec: edited, Table: b.table, Excluded: b.off})
			case 1: // its payload is another one, its times are not
				edited.Template.Task.Payload = []byte(fmt.Sprint(i))
				b.step(Edit{Spec: edited, Table: b.table, Excluded: b.off})
			default:
				b.step(Pause{By: "ada"})
				b.step(Resume{By: "ada"})
			}
		}
		end := a.now.Add(5 * time.Minute)
		a.sleep(end)
		b.sleep(end)
		if one, two := a.behind(0, end), b.behind(0, end); one != two {
			t.Fatalf("was\n%s\nand is\n%s\n%v", one, two, b.fates)
		}
	})
}

// TestAnEditIsAsAPutOfTheLastOne compares a schedule that is edited with one that was put like that, and with
// the preview.
func TestAnEditIsAsAPutOfTheLastOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was, is := drawSpec(t), drawSpec(t)
		was.Overlap, is.Overlap = Allow, Allow // no run of before is in the way of one of behind
		if was.Timetable.Entries[0].FromEnd || is.Timetable.Entries[0].FromEnd {
			t.Skip("it counts from the end of a run")
		}
		a := newKeeper(t, was, off(was), metamorphicStart, 0)
		at := instants(t, 3)[2]
		a.sleep(at)
		anew := a.s.Anew(&is)
		table, err := timetable.New(is.Timetable, "s", a.s.Anchor.Time())
		if err != nil {
			t.Fatal(err)
		}
		a.step(Edit{Spec: is, Table: table, Excluded: off(is), Anew: anew})

		b := newKeeper(t, is, off(is), at, 0)
		if !anew {
			b.s.Anchor, b.table = a.s.Anchor, table
			b = b.again()
		}
		end := at.Add(3 * time.Minute)
		var preview []string
		for f := range a.s.Coming(Env{Now: at, Table: a.table, Excluded: off(is)}, at) {
			if f.At > end {
				break
			}
			fate := "run"
			if f.Skipped != 0 {
				fate = f.Skipped.String()
			}
			preview = append(preview, clock(f.At)+" "+fate)
		}
		a.sleep(end.Add(time.Minute))
		b.sleep(end.Add(time.Minute))
		one, two := a.behind(at, end), b.behind(at, end)
		if one != two || one != fmt.Sprint(preview) {
			t.Fatalf("edited at %s\n%s\nput like that\n%s\npreview\n%s\n%v", clock(at), one, two, preview, a.fates)
		}
	})
}

// again is the keeper of a schedule as it was put, with the anchor that it has by now.
func (k *keeper) again() *keeper {
	n := &keeper{
		T: k.T, off: k.off, now: k.s.Created, lasts: k.lasts, table: k.table,
		due: make(map[string]store.Millis), begun: make(map[string]store.Millis), became: make(map[store.Millis]string), fates: make(map[store.Millis][]string),
	}
	n.s = &Schedule{Spec: k.s.Spec, Name: "s", Life: 1, Phase: Active, Created: k.s.Created, Anchor: k.s.Anchor, Decided: k.s.Created}
	n.step(nil)
	return n
}
