package actors

import "testing"

func TestBodySizeFollowsWhatIsSeen(t *testing.T) {
	var s bodySize
	if got := s.get(); got != unseenSize {
		t.Errorf("mean of nothing is %d, want %d", got, unseenSize)
	}
	s.learn(100, 100*300)
	if got := s.get(); got != 300 {
		t.Errorf("mean is %d after the first, want 300", got)
	}
	s.learn(1, 1<<20)
	if got := s.get(); got < 50_000 {
		t.Errorf("mean is %d after a large one, want it to count", got)
	}
	s.learn(512, 512*300)
	if got := s.get(); got > 3000 {
		t.Errorf("mean is %d after many small ones, want about 300 again", got)
	}
	s.learn(0, 0)
	s.learn(1, 0)
	if s.get() < 1 {
		t.Error("mean is below 1")
	}
}
