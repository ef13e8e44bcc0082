package checker

import (
	"math"
	"time"
)

// Times are in nanoseconds where they are on the monotonic clock.
const (
	millisecond = 1_000_000
	minute      = 60_000 * millisecond
)

// never is later than everything.
const never = math.MaxInt64

// milliseconds is d in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
