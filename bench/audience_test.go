package bench

import (
	"testing"
	"time"
)

func showOfTest() *audienceShow {
	o := &audienceOptions{Recipients: 1000, Shards: 4, Window: time.Minute, Grain: time.Second}
	s := &audienceShow{audienceOptions: o, changed: make(map[int]change), got: make(map[string][]started)}
	s.run.Begin = time.Unix(1000, 0)
	for i := range o.Recipients {
		s.give(i, 1)
	}
	return s
}

// give has a recipient get its task once more.
func (s *audienceShow) give(i, attempt int) {
	id := recipientID(i)
	due := s.run.Begin.Add(s.spread().Place(id))
	s.got[id] = append(s.got[id], started{due, due.Add(-25 * time.Second), due.Add(time.Millisecond), attempt})
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
	second := time.Second
	for want, do := range map[string]func(*audienceShow){
		"":       func(s *audienceShow) { s.give(1, 2) },
		twice:    func(s *audienceShow) { s.give(1, 1) },
		none:     func(s *audienceShow) { delete(s.got, recipientID(1)) },
		joinedIn: func(s *audienceShow) { s.give(1000, 1) },
		unwanted: func(s *audienceShow) {
			s.changed[1] = change{optsOut, s.run.Begin.Add(-time.Minute), s.run.Begin.Add(-time.Minute)}
		},
		misplaced: func(s *audienceShow) { s.got[recipientID(1)][0].due = s.got[recipientID(1)][0].due.Add(-second) },
		early:     func(s *audienceShow) { s.got[recipientID(1)][0].at = s.got[recipientID(1)][0].due.Add(-second) },
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
	delete(s.got, recipientID(1))
	delete(s.got, recipientID(2))
	s.changed[1] = change{leaves, s.run.Begin, s.run.Begin}
	late := s.run.Begin.Add(s.spread().Place(recipientID(2)) + 3*time.Second)
	s.changed[2] = change{leaves, late, late}
	s.check(line)
	if line.Broken[none] != 1 {
		t.Errorf("%d got none without an excuse, want the one who left behind its place", line.Broken[none])
	}
}
