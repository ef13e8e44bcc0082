package agenda

import (
	"testing"

	"github.com/ddq-io/ddq/store"
)

// A lane that could not be read when nothing of it was in memory has no task that could
// go and have it read again: the next look does.
func TestLaneWithoutTasksIsLookedAt(t *testing.T) {
	s := lanes{Wheel: 100, Ready: 100}
	l := s.Open(store.Lane{Priority: 1}, &window{})
	l.window.Full = true
	if got := s.TakeStarving(); len(got) != 0 {
		t.Fatalf("%d lanes are to be read already", len(got))
	}
	s.Look()
	s.Look()
	if got := s.TakeStarving(); len(got) != 1 || got[0] != l {
		t.Errorf("%d lanes are to be read, want the one", len(got))
	}
}
