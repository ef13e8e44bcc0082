package service

import (
	"testing"
	"time"
)

func TestBacklogAllowsWhatALookSaw(t *testing.T) {
	var b allowance
	now := time.Unix(100, 0)
	want := func(what string, got, want verdict) {
		t.Helper()
		if got != want {
			t.Fatalf("%s: got %d, want %d", what, got, want)
		}
	}
	want("the first of all", b.take(now, 10), lookFirst)
	b.seen(now, 7, 10, 1)
	for range 3 {
		want("room for three", b.take(now, 10), letIn)
	}
	want("the fourth", b.take(now, 10), turnedAway)
	now = now.Add(backlogPause)
	want("after a pause", b.take(now, 10), lookFirst)
	b.seen(now, 7, 10, 1) // the three are in flight still
	want("what is in flight counts", b.take(now, 10), turnedAway)
	b.leave(3)
	b.seen(now, 9, 10, 1)
	want("the last", b.take(now.Add(backlogGood-1), 10), letIn)
	b.leave(1)
	b.seen(now, 0, 10, 1)
	want("an old look", b.take(now.Add(backlogGood), 10), lookFirst)
	b.seen(now, 12, 10, 3)
	want("more than the most", b.take(now, 10), turnedAway)
	b.seen(now, 8, 10, 3)
	want("a share of two", b.take(now, 10), letIn)
	want("a share of two", b.take(now, 10), turnedAway)
	b.leave(1)
	want("another cap", b.take(now, 11), lookFirst)
	b.seen(now, 10, 11, 1)
	want("room under the other cap", b.take(now, 11), letIn)
}
