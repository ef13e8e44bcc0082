package bench

import (
	"fmt"
	"testing"
	"time"

	sdk "github.com/ddq-io/ddq/api/worker"
)

func TestRunBooksFindWhatIsBroken(t *testing.T) {
	begin := time.Unix(1000, 0)
	run := func(schedule, occurrence, attempt int, id string) *sdk.Task {
		at := begin.Add(time.Duration(occurrence)*time.Second + 300*time.Millisecond)
		return &sdk.Task{ID: id, Run: &sdk.Run{Schedule: fmt.Sprintf(scheduleName, schedule), Occurrence: at}, Due: at, CreatedAt: at.Add(-5 * time.Second), Attempt: attempt}
	}
	for what, c := range map[string]struct {
		then *sdk.Task
		late time.Duration
		want scheduleLine
	}{
		"another occurrence":       {run(1, 2, 1, "b"), 1, scheduleLine{Runs: 2}},
		"another schedule":         {run(0, 1, 1, "b"), 1, scheduleLine{Runs: 2}},
		"a second attempt":         {run(1, 1, 2, "a"), 1, scheduleLine{Runs: 1}},
		"the same attempt":         {run(1, 1, 1, "a"), 1, scheduleLine{Runs: 1, Doubled: 1}},
		"another task":             {run(1, 1, 2, "b"), 1, scheduleLine{Runs: 1, Doubled: 1}},
		"before its time":          {run(1, 2, 1, "b"), -1, scheduleLine{Runs: 2, Early: 1}},
		"of somebody else":         {run(7, 2, 1, "b"), 1, scheduleLine{Runs: 1}},
		"of what is none of these": {&sdk.Task{}, 1, scheduleLine{Runs: 1}},
	} {
		b, line := newRunBooks(2, begin, time.Second), scheduleLine{}
		first := run(1, 1, 1, "a")
		b.write(first, first.Due)
		b.write(c.then, c.then.Due.Add(c.late))
		b.read(&line)
		if line.Runs != c.want.Runs || line.Doubled != c.want.Doubled || line.Early != c.want.Early || b.came() != c.want.Runs {
			t.Errorf("%s: %+v", what, line)
		}
		if (line.violation() != nil) != (c.want.Doubled+c.want.Early > 0) {
			t.Errorf("%s: %v", what, line.violation())
		}
	}
}

func TestRunsThatAreMadeLateAreCounted(t *testing.T) {
	begin := time.Unix(1000, 0)
	b, line := newRunBooks(1, begin, time.Second), scheduleLine{}
	b.write(&sdk.Task{ID: "a", Run: &sdk.Run{Schedule: fmt.Sprintf(scheduleName, 0), Occurrence: begin}, Due: begin, CreatedAt: begin.Add(1), Attempt: 1}, begin.Add(time.Millisecond))
	if b.read(&line); line.MadeLate != 1 || line.LateMS.Max < 0.9 {
		t.Errorf("%+v", line)
	}
}

func TestPartsOfSchedulesAreKnown(t *testing.T) {
	o := scheduleOptions{Store: "memory", Parts: []string{"idle", "nothing"}, Standing: 1, Rate: 1, Made: 1, Herd: 1, Workers: 1, For: time.Second}
	if err := o.complete(); err == nil {
		t.Error("a part that is none is taken")
	}
	o.Parts = scheduleParts
	if err := o.complete(); err != nil {
		t.Error(err)
	}
}
