package workflows

import (
	"testing"
	"time"

	sdk "github.com/ddq-io/ddq/api/worker"
)

func TestFollowBooksFindWhatIsHalf(t *testing.T) {
	task := func(id string, i int, next bool, attempt int) *sdk.Task {
		return &sdk.Task{ID: id, Payload: stamp(i, next), Attempt: attempt}
	}
	for what, c := range map[string]struct {
		apart        bool
		came         []*sdk.Task
		half, repeat int
	}{
		"each has one":                         {false, []*sdk.Task{task("a", 0, false, 1), task("b", 0, true, 1)}, 0, 0},
		"one has none":                         {false, []*sdk.Task{task("a", 0, false, 1)}, 1, 0},
		"one has two":                          {false, []*sdk.Task{task("a", 0, false, 1), task("b", 0, true, 1), task("c", 0, true, 1)}, 1, 0},
		"one has two, of two attempts":         {false, []*sdk.Task{task("a", 0, false, 1), task("b", 0, true, 1), task("a", 0, false, 2), task("c", 0, true, 1)}, 1, 1},
		"the same apart, where it may":         {true, []*sdk.Task{task("a", 0, false, 1), task("b", 0, true, 1), task("a", 0, false, 2), task("c", 0, true, 1)}, 0, 2},
		"the next has a second attempt":        {false, []*sdk.Task{task("a", 0, false, 1), task("b", 0, true, 1), task("b", 0, true, 2)}, 0, 1},
		"the next comes twice for one attempt": {false, []*sdk.Task{task("a", 0, false, 1), task("b", 0, true, 1), task("b", 0, true, 1)}, 1, 0},
	} {
		b, now := newFollowBooks(1, c.apart), time.Unix(1000, 0)
		for _, came := range c.came {
			if i, next := b.write(came, now); i != 0 || next != (came.ID != "a") {
				t.Errorf("%s: %s is task %d, follows: %v", what, came.ID, i, next)
			}
		}
		var r followRound
		b.read(&r, now.Add(-time.Second))
		if r.Half != c.half || r.Repeat != c.repeat {
			t.Errorf("%s: %+v", what, r)
		}
		line := followLine{Ack: &r, Apart: &followRound{}}
		if (line.violation() != nil) != (c.half > 0) {
			t.Errorf("%s: %v", what, line.violation())
		}
	}
}

func TestTheRoundOfAWayIsTheMedian(t *testing.T) {
	w := followWay{half: 3, rounds: []*followRound{{CPUPerTask: 9, EndToEndPerS: 1}, {CPUPerTask: 1}, {CPUPerTask: 4, EndToEndPerS: 7}}}
	if r := w.median(); r.CPUPerTask != 4 || r.EndToEndPerS != 7 || r.Half != 3 {
		t.Errorf("%+v", r)
	}
}
