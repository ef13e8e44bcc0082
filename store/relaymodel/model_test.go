package relaymodel

import (
	"flag"
	"strings"
	"testing"
)

var whole = flag.Bool("model.whole", false, "visit the states of large cases, too: half a minute")

func TestRelay(t *testing.T) { check(t, cases()) }

// TestRulesAreNeeded takes each rule away.
func TestRulesAreNeeded(t *testing.T) { check(t, mutants()) }

func check(t *testing.T, cases []config) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.states > large && !*whole {
				t.Skipf("%d states: make model visits them", c.states)
			}
			found, states, way := run(c, 3_000_000)
			t.Logf("%d states, found: %v", states, found)
			if found != c.finds {
				t.Errorf("found %v in %d states, want %v:\n%s", found, states, c.finds, strings.Join(way, "\n"))
			}
		})
	}
}
