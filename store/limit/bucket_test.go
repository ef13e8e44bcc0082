package limit

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

// TestAChangedRateGivesTokensToWhoAsksForNow has a rate of one an hour used up, and raised to twenty a second. Who asks
// again and again for tokens of now once was told each time that the next one comes in 50 ms.
func TestAChangedRateGivesTokensToWhoAsksForNow(t *testing.T) {
	var s State
	now := time.UnixMilli(1_700_000_000_000)
	s.Reserve(store.Reservation{Rate: store.Rate{Count: 1, Period: time.Hour, Burst: 1}, N: 1}, now)
	now = now.Add(time.Second)
	asked := store.Reservation{Rate: store.Rate{Count: 20, Period: time.Second, Burst: 1}, N: 1}
	got := s.Reserve(asked, now)
	if got.N != 0 || got.First.After(now.Add(50*time.Millisecond)) {
		t.Fatalf("at first %+v", got)
	}
	if again := s.Reserve(asked, got.First); again.N != 1 {
		t.Errorf("asked again when there was to be one: %+v", again)
	}
}
