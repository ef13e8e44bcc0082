package service

import (
	"slices"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/fleet"
)

// members are those of the fleet; a node that stands alone is one.
func members(node *actors.Node) []fleet.Member {
	if v := node.Membership().View(); v != nil {
		return slices.Clone(v.Members())
	}
	return []fleet.Member{{Name: node.Config().Node, Addr: node.Config().Addr, State: fleet.MemberActive}}
}
