package fleet_test

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/zones"
)

// members is a view of who is there.
type members []fleet.Member

func (v members) Members() []fleet.Member      { return v }
func (v members) Owner(store.Shard) string     { return "" }
func (v members) Without(...string) fleet.View { return v }

func TestMembersWhoseZonesDiffer(t *testing.T) {
	const year = 2026 << 48
	for what, c := range map[string]struct {
		rules []zones.Rules // of a, b, c, ...
		want  string
	}{
		"nobody is there":           {nil, "[] []"},
		"one alone":                 {[]zones.Rules{year + 1}, "[] []"},
		"all agree":                 {[]zones.Rules{year + 1, year + 1, year + 1}, "[] []"},
		"nothing is known":          {[]zones.Rules{0, 0}, "[] []"},
		"one of before":             {[]zones.Rules{year + 1, 0, year + 1}, "[] []"},
		"of another year":           {[]zones.Rules{year + 1, 1<<48 + year + 2, year + 1}, "[] []"},
		"one differs":               {[]zones.Rules{year + 2, year + 1, year + 1}, "[b c] [a]"},
		"two, and nobody has more":  {[]zones.Rules{year + 2, year + 1}, "[a] [b]"},
		"each has others":           {[]zones.Rules{year + 3, year + 2, year + 1}, "[a] [b c]"},
		"besides one of before":     {[]zones.Rules{year + 1, year + 2, 0}, "[a] [b]"},
		"most are not the first":    {[]zones.Rules{year + 3, year + 1, year + 2, year + 1}, "[b d] [a c]"},
		"besides one of other year": {[]zones.Rules{year + 1, 1<<48 + year + 2, year + 3}, "[a b] [c]"},
	} {
		var v members
		for i, r := range c.rules {
			v = append(v, fleet.Member{Name: string(rune('a' + i)), Rules: r})
		}
		got := fleet.FindOtherZones(v)
		if text := fmt.Sprint(got.Most, got.Others); text != c.want || (got.String() == "") != (len(got.Others) == 0) {
			t.Errorf("%s: %s, %q, want %s", what, text, got, c.want)
		}
	}
	if got := fleet.FindOtherZones(nil); got.String() != "" {
		t.Errorf("without a view: %q", got)
	}
	differ := fleet.OtherZones{Most: []string{"a", "c"}, Others: []string{"b"}}
	const want = "nodes have different time zones: those of b are not those of a, c; install the same tzdata on all machines and restart these nodes"
	if got := differ.String(); got != want {
		t.Errorf("%q", got)
	}
}
