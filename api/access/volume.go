package access

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// forever is the patience of a stream without a deadline.
const forever = time.Duration(math.MaxInt64)

// volume bounds how many bytes of payloads come in a second. A second's worth may come at once. What is
// larger waits for a whole second's worth, and then what it has beyond that is missing to those after it:
// so the average is kept whatever the size of a call.
type volume struct {
	perSecond int

	mu    sync.Mutex
	bytes *rate.Limiter // guarded by mu: its burst is another one for a moment
}

func newVolume(perSecond int) *volume {
	return &volume{perSecond: perSecond, bytes: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
}

// take counts so many bytes, and returns how long they have to wait. It counts none when that is longer
// than their patience.
func (v *volume) take(n int, now time.Time, patience time.Duration) (wait time.Duration, taken bool) {
	if n == 0 {
		return 0, true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if missing := float64(min(n, v.perSecond)) - v.bytes.TokensAt(now); missing > 0 {
		wait = pause(missing, v.perSecond)
	}
	if wait > patience {
		return wait, false
	}
	v.count(n, now)
	return wait, true
}

// count takes bytes that may be more than there are. mu is held.
func (v *volume) count(n int, now time.Time) {
	if n > v.perSecond { // than may come at once
		v.bytes.SetBurstAt(now, n)
		defer v.bytes.SetBurstAt(now, v.perSecond)
	}
	v.bytes.ReserveN(now, n)
}
