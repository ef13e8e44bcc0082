package intake

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func TestTokensAreTakenAheadForAMoment(t *testing.T) {
	rate := store.Rate{Kind: store.TokenBucket, Count: 1000, Period: time.Second, Burst: 500}
	var tokens Tokens
	now := time.Unix(100, 0)
	take := func(what string, wanted int, taken bool, reserve int, wait time.Duration) {
		t.Helper()
		gotTaken, gotReserve, gotWait := tokens.Take(now, rate, wanted)
		if gotTaken != taken || gotReserve != reserve || gotWait != wait {
			t.Fatalf("%s: %v, %d, %v; want %v, %d, %v", what, gotTaken, gotReserve, gotWait, taken, reserve, wait)
		}
	}
	take("the first", 1, false, 50, 0) // what comes in 50 ms
	take("of a large request", 200, false, 200, 0)
	take("of a request beyond the burst", 1000, false, 500, 0)
	tokens.Add(now, store.Tokens{N: 2, Now: now, First: now})
	take("one", 1, true, 0, 0)
	take("two", 1, true, 0, 0)
	take("more than there were", 1, false, 50, 0)
	tokens.Add(now, store.Tokens{Now: now, First: now.Add(7 * time.Millisecond)})
	take("none in the store", 1, false, 0, 7*time.Millisecond)
	now = now.Add(7 * time.Millisecond)
	take("when there is one again", 1, false, 50, 0)
	tokens.Add(now, store.Tokens{N: 50, Now: now, First: now})
	now = now.Add(ahead)
	take("when those of before are lost", 1, false, 50, 0)
	tokens.Add(now, store.Tokens{N: 1, Now: now, First: now})
	take("the last", 1, true, 0, 0)
	take("none is left of those that were lost", 1, false, 50, 0)
}
