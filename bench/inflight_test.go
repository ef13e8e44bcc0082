package bench

import (
	"testing"

	"github.com/ddq-io/ddq/bench/result"
)

func TestMedianLineAddsUpBrokenPromises(t *testing.T) {
	runs := []result.Line{
		{InFlight: "default", EndToEndPerS: 30, LastMS: 5, Lost: 1},
		{InFlight: "default", EndToEndPerS: 10, LastMS: 9, Early: 2},
		{InFlight: "default", EndToEndPerS: 20, LastMS: 7, Duplicate: 3, Lost: 1},
	}
	got := medianLine(runs)
	if got.EndToEndPerS != 20 || got.LastMS != 7 {
		t.Errorf("medians are %v a second and %v ms, want 20 and 7", got.EndToEndPerS, got.LastMS)
	}
	if got.Lost != 2 || got.Early != 2 || got.Duplicate != 3 {
		t.Errorf("%d lost, %d early, %d duplicate, want 2, 2 and 3", got.Lost, got.Early, got.Duplicate)
	}
	if runs[0].Lost != 1 {
		t.Error("the runs were changed")
	}
}

func TestInFlightKeepsSlowHandlersBusyForAWhileOnly(t *testing.T) {
	for _, test := range []struct {
		o    Options
		want int
	}{
		{Options{Concurrency: 16}, inFlightTasks},
		{Options{Concurrency: 16, Hold: 100_000_000}, 240},
		{Options{Concurrency: 16, Hold: 100_000_000, Tasks: 50}, 50},
	} {
		if got := (&lab{o: test.o}).inFlightTasks(); got != test.want {
			t.Errorf("%d handlers of %v: %d tasks, want %d", test.o.Concurrency, test.o.Hold, got, test.want)
		}
	}
}
