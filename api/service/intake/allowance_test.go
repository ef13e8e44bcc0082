package intake

import (
	"testing"
	"time"
)

func TestBacklogAllowsWhatALookSaw(t *testing.T) {
	var b Allowance
	now := time.Unix(100, 0)
	want := func(what string, got, want Verdict) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: got %d, want %d", what, got, want)
		}
	}
	want("the first of all", b.Take(now, 10), LookFirst)
	b.Seen(now, 7, 10, 1)
	for range 3 {
		want("room for three", b.Take(now, 10), LetIn)
	}
	want("the fourth", b.Take(now, 10), TurnedAway)
	now = now.Add(Pause)
	want("after a pause", b.Take(now, 10), LookFirst)
	b.Seen(now, 7, 10, 1) // the three are in flight still
	want("what is in flight counts", b.Take(now, 10), TurnedAway)
	b.Leave(3)
	b.Seen(now, 9, 10, 1)
	want("the last", b.Take(now.Add(good-1), 10), LetIn)
	b.Leave(1)
	b.Seen(now, 0, 10, 1)
	want("an old look", b.Take(now.Add(good), 10), LookFirst)
	b.Seen(now, 12, 10, 3)
	want("more than the most", b.Take(now, 10), TurnedAway)
	b.Seen(now, 8, 10, 3)
	want("a share of two", b.Take(now, 10), LetIn)
	want("a share of two", b.Take(now, 10), TurnedAway)
	b.Leave(1)
	want("another cap", b.Take(now, 11), LookFirst)
	b.Seen(now, 10, 11, 1)
	want("room under the other cap", b.Take(now, 11), LetIn)
}
