package store

import (
	"slices"
	"testing"
)

func TestIndexSet(t *testing.T) {
	set := NewIndexSet("tenant", "path", "", "tenant")
	if got := set.Names(); !slices.Equal(got, []string{"path", "tenant"}) {
		t.Errorf("names are %q", got)
	}
	if set.Has("tenan") || !set.Has("path") || IndexSet("").Has("") {
		t.Error("has what it has not")
	}
	if got := set.And(NewIndexSet("tenant", "x")); got != NewIndexSet("tenant") {
		t.Errorf("both are %q", got)
	}
	if got := set.In([]Attribute{{Key: "tenant"}}); got != NewIndexSet("tenant") {
		t.Errorf("those that a task has are %q", got)
	}
}

// What nodes say that do not know the same takes nothing for complete that is not.
func TestIndexState(t *testing.T) {
	a, b, ab := NewIndexSet("a"), NewIndexSet("b"), NewIndexSet("a", "b")
	fresh := IndexState{}.Add(ab, true)
	if fresh.Ready != ab {
		t.Errorf("an empty shard is complete for %q", fresh.Ready)
	}
	if got := fresh.Add(a, false); got.Ready != a {
		t.Errorf("after a task with less it is complete for %q", got.Ready)
	}
	if got := (IndexState{}).Add(ab, false); got.Ready != "" {
		t.Errorf("after a task with more it is complete for %q", got.Ready)
	}
	walk := IndexState{Ready: a}.Begin(ab)
	if walk.Ready != a || walk.Add(ab, false) != walk {
		t.Errorf("a walk has the state %+v", walk)
	}
	if got := walk.Add(b, false); got != (IndexState{}) {
		t.Errorf("a walk goes on in the state %+v", got)
	}
	if got := (IndexState{Ready: ab}).Begin(b); got.Ready != b || got.Building != b {
		t.Errorf("a walk that takes out begins in the state %+v", got)
	}
}
