package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/bench/result"
)

func TestBookOfSchedulesFindsWhatIsMissing(t *testing.T) {
	begin := time.Unix(1000, 0)
	ran := func(schedule, second int, id string, attempt int, late time.Duration) string {
		at := begin.Add(time.Duration(second) * time.Second)
		return fmt.Sprintf("ran %d %s %d %d %d", schedule, id, attempt, at.Add(late).UnixMicro(), at.UnixMilli())
	}
	whole := []string{ran(0, 0, "a", 1, 1000), ran(0, 1, "b", 1, 1000), ran(1, 0, "c", 1, 1000), ran(1, 1, "d", 1, time.Second)}
	for name, c := range map[string]struct {
		told []string
		want result.Line
	}{
		"all":                       {whole, result.Line{}},
		"none of one":               {whole[1:], result.Line{Lost: 1}},
		"before and behind":         {append(whole[:4:4], ran(0, -1, "e", 1, 0), ran(0, 2, "f", 1, 0)), result.Line{}},
		"another run":               {append(whole[:4:4], ran(0, 0, "e", 1, 2000)), result.Line{Duplicate: 1}},
		"again":                     {append(whole[:4:4], ran(0, 0, "a", 1, 2000)), result.Line{Duplicate: 1}},
		"again, and it says so":     {append(whole[:4:4], ran(0, 0, "a", 2, 2000)), result.Line{Repeat: 1}},
		"before its time":           {append(whole[1:4:4], ran(0, 0, "a", 1, -1000)), result.Line{Early: 1}},
		"known by who made it":      {append(whole[1:4:4], "made a 1000000", "ran 0 a 1 1001500000 0"), result.Line{}},
		"known by nobody":           {append(whole[1:4:4], "ran 0 a 1 1000500000 0"), result.Line{}},
		"known by nobody, and late": {append(whole[1:4:4], "ran 0 a 1 1002500000 0"), result.Line{Lost: 1}},
	} {
		b, line := newPeriodicBook(2), result.Line{}
		for _, text := range c.told {
			if ready, err := b.note(text); ready || err != nil {
				t.Fatal(text, ready, err)
			}
		}
		b.read(begin, begin.Add(2*time.Second), &line)
		if line.Tasks != 4 || line.Lost != c.want.Lost || line.Duplicate != c.want.Duplicate || line.Repeat != c.want.Repeat || line.Early != c.want.Early {
			t.Errorf("%s: %d of %d lost, %d duplicate, %d repeated, %d early", name, line.Lost, line.Tasks, line.Duplicate, line.Repeat, line.Early)
		}
		if !b.all() || line.LateMS.Max < 990 {
			t.Errorf("%s: all %t, %v ms late", name, b.all(), line.LateMS.Max)
		}
	}
}

func TestBookOfSchedulesReadsWholeLines(t *testing.T) {
	b := newPeriodicBook(1)
	if ready, err := b.note("ready"); !ready || err != nil {
		t.Error(ready, err)
	}
	for _, text := range []string{"", "made a", "ran 0 a 1 2", "ran 0 a first 2 3", "went 0"} {
		if _, err := b.note(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
