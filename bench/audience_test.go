package bench

import (
	"testing"
	"time"

	sdk "github.com/ddq-io/ddq/api/worker"
)

func showOfTest() *audienceShow {
	o := &audienceOptions{Recipients: 1000, Shards: 4, Window: time.Minute, Grain: time.Second}
	s := &audienceShow{audienceOptions: o, changed: make(map[int]change), got: make(map[int]started)}
	s.run.Begin = time.Unix(1000, 0)
	for i := range o.Recipients {
		s.give(i, 1)
	}
	return s
}

// give has a recipient get its task once more.
func (s *audienceShow) give(i, attempt int) {
	due := s.run.Begin.Add(s.spread().Place(recipientID(i)))
	s.begin(i, &sdk.Task{Due: due, CreatedAt: due.Add(-25 * time.Second), Attempt: attempt}, due.Add(time.Millisecond))
}

// amend changes what a recipient got.
func (s *audienceShow) amend(i int, edit func(*started)) {
	got := s.got[i]
	edit(&got)
	s.got[i] = got
}

func TestRecipientsHaveTheirNumbers(t *testing.T) {
	for i := range 1000 {
		if got := numberOf(recipientID(i)); got != i {
			t.Fatalf("%d is %d", i, got)
		}
	}
	if numberOf("nobody") != -1 {
		t.Error("nobody has a number")
	}
}

func TestAudienceChecksFindWhatIsBroken(t *testing.T) {
	second := time.Second.Microseconds()
	for want, do := range map[string]func(*audienceShow){
		"":       func(s *audienceShow) { s.give(1, 2) },
		twice:    func(s *audienceShow) { s.give(1, 1) },
		none:     func(s *audienceShow) { delete(s.got, 1) },
		joinedIn: func(s *audienceShow) { s.give(1000, 1) },
		unwanted: func(s *audienceShow) {
			s.changed[1] = change{optsOut, s.run.Begin.Add(-time.Minute), s.run.Begin.Add(-time.Minute)}
		},
		misplaced: func(s *audienceShow) { s.amend(1, func(got *started) { got.due -= second }) },
		early:     func(s *audienceShow) { s.amend(1, func(got *started) { got.at = got.due - second }) },
	} {
		s, line := showOfTest(), new(audienceLine)
		do(s)
		s.check(line)
		for what, n := range line.Broken {
			if (n > 0) != (what == want) {
				t.Errorf("%q is broken %d times, and %q is", what, n, want)
			}
		}
		if (line.violation() == nil) != (want == "") {
			t.Errorf("%q: %v", want, line.violation())
		}
	}
}

func TestWhoLeftInTimeIsExcused(t *testing.T) {
	s, line := showOfTest(), new(audienceLine)
	delete(s.got, 1)
	delete(s.got, 2)
	s.changed[1] = change{leaves, s.run.Begin, s.run.Begin}
	late := s.run.Begin.Add(s.spread().Place(recipientID(2)) + 3*time.Second)
	s.changed[2] = change{leaves, late, late}
	s.check(line)
	if line.Broken[none] != 1 {
		t.Errorf("%d got none without an excuse, want the one who left behind its place", line.Broken[none])
	}
}
