package smooth

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// peak returns the largest number of tasks in a slot of some milliseconds, over the mean.
func peak(dues []store.Millis, from store.Millis, window, slot int) float64 {
	counts := make([]int, window/slot)
	for _, due := range dues {
		counts[min(int(due-from)/slot, len(counts)-1)]++
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	return float64(most) * float64(len(counts)) / float64(len(dues))
}

// TestSlackSpreadsAHerd: what is asked for elsewhere is jitter at random (dkron-io/dkron#866,
// hashicorp/nomad#17024), which at this number has a peak of 1.3 in some tenth of a second.
func TestSlackSpreadsAHerd(t *testing.T) {
	const from, window, tasks = store.Millis(1_900_000_000_000), 60_000, 100_000
	for _, starts := range [][]float64{{0}, {0.1, 0.7, 0.3}, {0.5, 0.5000001}, {0, 0.25, 0.5, 0.75, 0.9}} {
		nodes := make([]Smoother, len(starts))
		dues := make([]store.Millis, tasks)
		for i := range dues {
			n := i % len(nodes)
			dues[i] = nodes[n].Place(from, from+window-1, starts[n])
			if dues[i] < from || dues[i] >= from+window {
				t.Fatalf("placed at %d", dues[i]-from)
			}
		}
		tenth, second := peak(dues, from, window, 100), peak(dues, from, window, 1000)
		t.Logf("%d nodes: peak of %.3f x the mean in a tenth of a second, %.3f in a second", len(nodes), tenth, second)
		if tenth > 1.2 || second > 1.2 {
			t.Errorf("%d nodes: peak of %.3f x the mean in a tenth of a second, %.3f in a second", len(nodes), tenth, second)
		}
	}
}

// TestSlackFillsWhatIsEmpty has a second half that is free: tasks that may go there do.
func TestSlackFillsWhatIsEmpty(t *testing.T) {
	const from = store.Millis(1_900_000_000_000)
	var s Smoother
	for range 3000 {
		s.Place(from, from+29_999, 0)
	}
	late := 0
	for range 3000 {
		if s.Place(from, from+59_999, 0) >= from+30_000 {
			late++
		}
	}
	if late < 2600 {
		t.Errorf("%d of 3,000 tasks went where nothing was", late)
	}
	if due := s.Place(from, from, 0); due != from {
		t.Errorf("a window of one millisecond: %d", due-from)
	}
	if due := s.Place(from, from+store.Millis(87600*time.Hour/time.Millisecond), 0); due < from {
		t.Errorf("a window of ten years: %d", due-from)
	}
}
