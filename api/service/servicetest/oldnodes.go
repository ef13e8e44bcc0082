package servicetest

import (
	"slices"

	"github.com/ddq-io/ddq/actors/fleet"
)

// withOld is a view in which one of the members is of before there were schedules.
type withOld struct {
	fleet.View
	old string
}

func (v withOld) Members() []fleet.Member {
	members := slices.Clone(v.View.Members())
	for i := range members {
		members[i].Old = members[i].Name == v.old
	}
	return members
}

// ShowOld has a node see another one as of before there were schedules and workflows, until
// Show(nil).
func (n *Node) ShowOld(name string) {
	n.Show(func(was fleet.View) fleet.View { return withOld{was, name} })
}
