package outbox

import (
	"testing"
	"time"
)

func TestNothingIsEarly(t *testing.T) {
	for _, at := range []time.Time{time.Unix(5, 1), time.Unix(5, 1_000_000), time.Unix(5, 1_000_001)} {
		got := roundUp(at)
		if got.Before(at) || got.Sub(at) >= time.Millisecond || got.Nanosecond()%1_000_000 != 0 {
			t.Errorf("%v became %v", at, got)
		}
	}
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2} {
		if got := toMillis(d); got != want {
			t.Errorf("%v became %d ms, want %d", d, got, want)
		}
	}
	if millis(1<<62) < 0 {
		t.Error("a long time is negative")
	}
}
