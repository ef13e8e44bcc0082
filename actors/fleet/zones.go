package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/timer/zones"
)

// ZonesDiffer is what the log and the text of OtherZones begin with.
const ZonesDiffer = "nodes have different time zones"

// OtherZones are members whose time zones have other rules than those of most of them. A
// member whose rules are not known is neither.
type OtherZones struct {
	Most   []string // by name; of as many members those with the first name
	Others []string // by name
}

// FindOtherZones returns none when all rules that are known are the same, and without a view.
func FindOtherZones(v View) OtherZones {
	if v == nil {
		return OtherZones{}
	}
	members := slices.DeleteFunc(slices.Clone(v.Members()), func(m Member) bool { return m.Rules == 0 })
	var found OtherZones
	for _, m := range members {
		same, others := splitByRules(members, m.Rules)
		if len(others) > 0 && len(same) > len(found.Most) {
			found = OtherZones{same, others}
		}
	}
	return found
}

// splitByRules tells members that differ from some rules from those that do not.
func splitByRules(members []Member, rules zones.Rules) (same, others []string) {
	for _, m := range members {
		if m.Rules.DifferFrom(rules) {
			others = append(others, m.Name)
		} else {
			same = append(same, m.Name)
		}
	}
	return same, others
}

// String is the warning; empty when there are none.
func (o OtherZones) String() string {
	if len(o.Others) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: those of %s are not those of %s; install the same tzdata on all machines and restart these nodes",
		ZonesDiffer, strings.Join(o.Others, ", "), strings.Join(o.Most, ", "))
}
