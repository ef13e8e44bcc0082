package subscription

import (
	"testing"
)

func TestBodySizeFollowsWhatIsSeen(t *testing.T) {
	var s BodySize
	if got := s.Get(); got != unseenSize {
		t.Errorf("mean of nothing is %d, want %d", got, unseenSize)
	}
	s.Learn(100, 100*300)
	if got := s.Get(); got != 300 {
		t.Errorf("mean is %d after the first, want 300", got)
	}
	s.Learn(1, 1<<20)
	if got := s.Get(); got < 50_000 {
		t.Errorf("mean is %d after a large one, want it to count", got)
	}
	s.Learn(512, 512*300)
	if got := s.Get(); got > 3000 {
		t.Errorf("mean is %d after many small ones, want about 300 again", got)
	}
	s.Learn(0, 0)
	s.Learn(1, 0)
	if s.Get() < 1 {
		t.Error("mean is below 1")
	}
}
