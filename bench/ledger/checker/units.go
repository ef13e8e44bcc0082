package checker

import "math"

// Times are in nanoseconds where they are on the monotonic clock.
const (
	millisecond = 1_000_000
	minute      = 60_000 * millisecond
)

// never is later than everything.
const never = math.MaxInt64
