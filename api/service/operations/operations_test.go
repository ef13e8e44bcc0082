package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

var quiet = slog.New(slog.DiscardHandler)

// away is a registry that may be away.
type away struct {
	*memstore.Store
	gone atomic.Bool
}

func (a *away) PutRecord(ctx context.Context, r store.Record) (int64, error) {
	if a.gone.Load() {
		return 0, store.ErrUnavailable
	}
	return a.Store.PutRecord(ctx, r)
}

// fleet runs test with operations of some nodes on one store, in fake time.
func fleet(t *testing.T, nodes int, test func(t *testing.T, st *away, all []*Operations)) {
	synctest.Test(t, func(t *testing.T) {
		st := &away{Store: memstore.New()}
		defer st.Close()
		all := make([]*Operations, nodes)
		for i := range all {
			all[i] = New(st, fmt.Sprintf("n%d", i+1), func() store.Millis { return store.Millis(time.Now().UnixMilli()) }, quiet)
			defer all[i].Stop()
		}
		test(t, st, all)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parts changes 100 tasks in each part.
func parts(n int) Act {
	return func(_ context.Context, report func(Progress) error) error {
		var p Progress
		for range n {
			p.Matched, p.Changed, p.Skipped = p.Matched+100, p.Changed+90, p.Skipped+10
			if err := report(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// endless changes a task now and then until it is told to stop.
func endless(ctx context.Context, report func(Progress) error) error {
	for p := (Progress{}); ; p.Changed++ {
		if err := report(p); err != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func get(t *testing.T, s *Operations, o *Operation) *Operation {
	t.Helper()
	now, err := s.Get(t.Context(), o.Topic, o.ID)
	must(t, err)
	return now
}

func TestOperationsRunAtTheRateThatWasAskedFor(t *testing.T) {
	for rate, want := range map[int]time.Duration{0: 0, 100: 10 * time.Second, 1000: time.Second} {
		fleet(t, 2, func(t *testing.T, _ *away, all []*Operations) {
			o, err := all[0].Start(t.Context(), Spec{Topic: "mail", Request: []byte("asked"), By: "ada", Rate: rate, Act: parts(10)})
			must(t, err)
			if o.State != Waiting || o.ID == "" || o.Node != "n1" || o.By != "ada" {
				t.Errorf("it began as %+v", o)
			}
			time.Sleep(want/2 + time.Millisecond)
			synctest.Wait()
			if half := get(t, all[1], o); rate > 0 && (half.State.Ended() || rate < 1000 && (half.Changed < 300 || half.Changed > 600)) {
				t.Errorf("half way at %d a second it is %+v", rate, half)
			}
			time.Sleep(want/2 + 2*time.Second)
			end := get(t, all[1], o)
			if end.State != Done || end.Matched != 1000 || end.Changed != 900 || end.Skipped != 100 || string(end.Request) != "asked" {
				t.Errorf("at %d a second it ended as %+v", rate, end)
			}
			if took := end.Ended.Sub(end.Began); took < want || took > want+want/10 {
				t.Errorf("at %d a second it took %v, want %v", rate, took, want)
			}
		})
	}
}

func TestAnyNodeStopsAnOperation(t *testing.T) {
	fleet(t, 2, func(t *testing.T, _ *away, all []*Operations) {
		o, err := all[0].Start(t.Context(), Spec{Topic: "mail", Act: endless})
		must(t, err)
		time.Sleep(5 * time.Second)
		asked, err := all[1].Ask(t.Context(), "mail", o.ID)
		must(t, err)
		if !asked.Stopping || asked.State != Running {
			t.Errorf("asked to stop it is %+v", asked)
		}
		time.Sleep(2 * time.Second)
		end := get(t, all[1], o)
		if end.State != Stopped || end.Changed < 40 || end.Ended.Sub(end.Began) > 7*time.Second {
			t.Errorf("it ended as %+v", end)
		}
		again, err := all[0].Ask(t.Context(), "mail", o.ID)
		if err != nil || again.State != Stopped || !again.Ended.Time().Equal(end.Ended.Time()) {
			t.Errorf("asked again it is %+v, %v", again, err)
		}
	})
}

func TestWhatANodeLeavesIsBrokenOff(t *testing.T) {
	fleet(t, 2, func(t *testing.T, st *away, all []*Operations) {
		stopped, err := all[0].Start(t.Context(), Spec{Topic: "mail", Act: endless})
		must(t, err)
		time.Sleep(3 * time.Second)
		all[0].Stop()
		if o := get(t, all[1], stopped); o.State != BrokenOff || o.Changed < 20 {
			t.Errorf("its node stopped: %+v", o)
		}
		if _, err := all[0].Start(t.Context(), Spec{Topic: "mail", Act: endless}); problem.FromStore(err).Reason != "DRAINING" {
			t.Errorf("a node that stops starts another: %v", err)
		}
		silent, err := all[1].Start(t.Context(), Spec{Topic: "mail", Act: endless})
		must(t, err)
		time.Sleep(3 * time.Second)
		st.gone.Store(true) // to the others its node is as dead
		time.Sleep(lostAfter + beat)
		if o := get(t, all[0], silent); o.State != BrokenOff || o.Changed < 10 || o.Ended != o.Seen {
			t.Errorf("its node is silent: %+v", o)
		}
		st.gone.Store(false)
		time.Sleep(2 * beat)
		if o := get(t, all[0], silent); o.State != Running || o.Changed < 100 {
			t.Errorf("its node came back: %+v", o)
		}
	})
}

func TestWhatFailsSaysWhy(t *testing.T) {
	fleet(t, 1, func(t *testing.T, _ *away, all []*Operations) {
		for _, err := range []error{problem.BadField("filter", "BAD_FILTER", "no"), store.ErrFull, errors.New("boom")} {
			o, startErr := all[0].Start(t.Context(), Spec{Topic: "mail", Act: func(context.Context, func(Progress) error) error { return err }})
			must(t, startErr)
			synctest.Wait()
			if end := get(t, all[0], o); end.State != Failed || end.Failure == nil || end.Failure.Reason == "" || end.Failure.Message == "" {
				t.Errorf("%v: it ended as %+v", err, end)
			}
		}
	})
}

func TestFourRunAtATimeAndAHundredWait(t *testing.T) {
	fleet(t, 1, func(t *testing.T, _ *away, all []*Operations) {
		s := all[0]
		var first *Operation
		for i := range mostWaiting {
			o, err := s.Start(t.Context(), Spec{Topic: "mail", Act: endless})
			must(t, err)
			if i == 0 {
				first = o
			}
		}
		if _, err := s.Start(t.Context(), Spec{Topic: "mail", Act: endless}); problem.FromStore(err).Reason != "TOO_MANY_OPERATIONS" {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(2 * beat)
		states := map[State]int{}
		page, more, err := s.List(t.Context(), "mail", MaxPage, "")
		must(t, err)
		for _, o := range page {
			states[o.State]++
		}
		if states[Running] != atOnce || states[Waiting] != mostWaiting-atOnce || more {
			t.Errorf("they are %v, more: %v", states, more)
		}
		for _, o := range page { // those that wait, too
			_, err := s.Ask(t.Context(), "mail", o.ID)
			must(t, err)
		}
		time.Sleep(3 * beat)
		if end := get(t, s, first); end.State != Stopped {
			t.Errorf("the first ended as %+v", end)
		}
		_, err = s.Start(t.Context(), Spec{Topic: "mail", Act: parts(1)})
		must(t, err)
	})
}

func TestTheOldestThatEndedAreForgotten(t *testing.T) {
	fleet(t, 1, func(t *testing.T, st *away, all []*Operations) {
		s := all[0]
		s.most = 50
		open, err := s.Start(t.Context(), Spec{Topic: "mail", Act: endless})
		must(t, err)
		for i := range s.most + 5 {
			_, err := s.Start(t.Context(), Spec{Topic: []string{"mail", "sms"}[i%2], Act: parts(1)})
			must(t, err)
			synctest.Wait()
			time.Sleep(time.Millisecond) // ids rise with it
		}
		records, _, err := st.Records(t.Context(), kind)
		must(t, err)
		if len(records) != s.most {
			t.Errorf("%d are kept", len(records))
		}
		if o := get(t, s, open); o.State.Ended() {
			t.Errorf("the oldest, which runs, is %+v", o)
		}
		var seen []string
		for before, more := "", true; more; {
			var page []*Operation
			page, more, err = s.List(t.Context(), "sms", 7, before)
			must(t, err)
			for _, o := range page {
				if o.Topic != "sms" || before != "" && o.ID >= before {
					t.Fatalf("%s of %s comes behind %s", o.ID, o.Topic, before)
				}
				before = o.ID
				seen = append(seen, o.ID)
			}
		}
		if len(seen) < 20 {
			t.Errorf("pages have %d", len(seen))
		}
		_, err = s.Get(t.Context(), "mail", seen[0])
		if problem.FromStore(err).Reason != "NO_OPERATION" {
			t.Errorf("one of another topic: %v", err)
		}
	})
}

func TestRatesThatCannotBe(t *testing.T) {
	fleet(t, 1, func(t *testing.T, _ *away, all []*Operations) {
		for _, rate := range []int{-1, MaxRate + 1} {
			if _, err := all[0].Start(t.Context(), Spec{Topic: "mail", Rate: rate, Act: parts(1)}); problem.FromStore(err).Reason != "OUT_OF_RANGE_FIELD" {
				t.Errorf("%d: %v", rate, err)
			}
		}
	})
}
