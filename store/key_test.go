package store

import (
	"testing"
	"time"
)

func TestKeysAreLookedAtLessAndLess(t *testing.T) {
	const now = Millis(10_000_000)
	for _, c := range []struct{ due, pause time.Duration }{
		{0, 10 * time.Second}, {-time.Second, 10 * time.Second}, {-time.Minute, time.Minute}, {-100 * time.Hour, time.Hour},
		{time.Minute, 70 * time.Second}, {87600 * time.Hour, time.Hour},
	} {
		if got := KeyLook(now, now.Add(c.due)).Sub(now); got != c.pause {
			t.Errorf("due in %v: looked at after %v, want %v", c.due, got, c.pause)
		}
	}
}
