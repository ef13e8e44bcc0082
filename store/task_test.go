package store_test

import (
	"math"
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func TestMillisecondsBeyondADurationAreItsLongest(t *testing.T) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	for ms, want := range map[int64]int64{0: 0, 1: 1, -1: -1, most: most, most + 1: most, math.MaxInt64: most, math.MinInt64: -most} {
		if d := store.FromMillis(ms); d.Milliseconds() != want || store.CeilMillis(d) != want {
			t.Errorf("%d: %v", ms, d)
		}
	}
}
