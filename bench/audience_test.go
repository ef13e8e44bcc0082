package bench

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
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

// TestAudienceTellsHowFarItIs is about the line a minute, as an import of ten million takes several.
func TestAudienceTellsHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := showOfTest()
		begin := s.run.Begin
		s.Log, s.run.Begin = &log, time.Time{}
		s.imported.Store(400)
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		time.AfterFunc(90*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.run.Begin, s.run.Behind = begin, 1500*time.Millisecond
		})
		s.tell(ctx)
		want := "audience: 1m0s: 400 of 1000 recipients are imported\naudience: 2m0s: 1000 recipients have their task, and the run is 1.5s behind their places\n"
		if log.String() != want {
			t.Errorf("got %q, want %q", log.String(), want)
		}
	})
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
