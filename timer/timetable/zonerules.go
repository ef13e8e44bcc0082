package timetable

import (
	"strings"
	"time"

	"github.com/ddq-io/ddq/timer/zones"
)

// ZoneRules returns the digest of the rules of all zones that a timetable can name, for the
// year of an instant and the two after it: nodes with the same one have the same occurrences.
// It reads some 600 files.
func ZoneRules(at time.Time) zones.Rules {
	return zones.RulesOf(strings.Split(strings.TrimSpace(zoneNames), "\n"), at)
}
