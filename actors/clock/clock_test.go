package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/store"
)

func TestClockBoundsTheStoresClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(func(by time.Duration) { t.Errorf("jumped by %v", by) })
		const ahead = 3 * time.Hour
		for _, trip := range []time.Duration{40 * time.Millisecond, 2 * time.Millisecond, 90 * time.Millisecond} {
			sent := time.Now()
			time.Sleep(trip / 2)
			read := time.Now().Add(ahead)
			time.Sleep(trip / 2)
			c.Observe(sent, time.Now(), read)
			truth := time.Now().Add(ahead)
			if c.Now().After(truth) || c.Latest().Before(truth) {
				t.Errorf("trip %v: %v is not within %v and %v", trip, truth, c.Now(), c.Latest())
			}
		}
		if width := c.Latest().Sub(c.Now()); width > 3*time.Millisecond {
			t.Errorf("bounds are %v apart after a trip of 2ms", width)
		}
	})
}

func TestClockReportsJumps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 600 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var jumped time.Duration
			c := New(func(by time.Duration) { jumped = by })
			now := time.Now()
			c.Observe(now, now, now)
			time.Sleep(time.Second)
			now = time.Now()
			c.Observe(now, now, now.Add(step))
			if off := (jumped - step).Abs(); off > 5*time.Millisecond {
				t.Errorf("step of %v reported as %v", step, jumped)
			}
			if off := c.Now().Sub(now.Add(step)).Abs(); off > time.Millisecond {
				t.Errorf("clock is %v off after a step of %v", off, step)
			}
		})
	}
}

func TestCeilMillisRoundsUp(t *testing.T) {
	for in, want := range map[int64]store.Millis{0: 0, 1: 1, 999_999: 1, 1_000_000: 1, 1_000_001: 2, 1_999_000_000: 1999, 1_999_000_001: 2000} {
		if got := CeilMillis(time.Unix(0, in)); got != want {
			t.Errorf("%d ns: got %d ms, want %d", in, got, want)
		}
	}
}
