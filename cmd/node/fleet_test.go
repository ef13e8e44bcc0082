package node

import (
	"testing"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/cluster"
)

func TestNodeThatDoesNotSayThatItTellsIsOld(t *testing.T) {
	a, b := cluster.Node{Name: "a", State: cluster.Active, Tells: true}, cluster.Node{Name: "b", State: cluster.Active}
	if old := fleet.OldMember(newView([]cluster.Node{a})); old != "" {
		t.Errorf("%q is old", old)
	}
	if old := fleet.OldMember(newView([]cluster.Node{a, b})); old != "b" {
		t.Errorf("%q is old, want b", old)
	}
}
