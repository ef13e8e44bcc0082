package workflows

import (
	"testing"
	"time"
)

func TestJournalBooksFindWhatIsForgotten(t *testing.T) {
	type mark struct{ ran, own bool }
	for what, c := range map[string]struct {
		then  mark
		marks int
		want  journalLine
	}{
		"it comes back":                   {mark{false, true}, 1, journalLine{}},
		"it runs again":                   {mark{true, true}, 2, journalLine{Forgotten: 1}},
		"it comes back as something else": {mark{false, false}, 1, journalLine{Forgotten: 1}},
	} {
		b, now, line := newJournalBooks(2, 1), time.Unix(1000, 0), journalLine{}
		b.write(0, 0, true, true, time.Millisecond)
		b.write(0, 0, c.then.ran, c.then.own, time.Millisecond)
		b.end(0, now)
		b.end(0, now)
		b.read(&line, now.Add(-time.Second))
		if line.Forgotten != c.want.Forgotten || line.Checkpoints != c.marks || line.NeverEnded != 1 {
			t.Errorf("%s: %+v", what, line)
		}
		if line.violation() == nil {
			t.Errorf("%s: a task that did not end breaks nothing", what)
		}
		b.end(1, now)
		b.read(&line, now.Add(-time.Second))
		if (line.violation() != nil) != (c.want.Forgotten > 0) {
			t.Errorf("%s: %v", what, line.violation())
		}
	}
}
