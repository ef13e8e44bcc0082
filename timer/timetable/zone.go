package timetable

import (
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/timer/zones"
)

// Recipient is the zone of timetables that are read by the clock of each recipient of an
// audience. Their occurrences are when the first clock on earth is there: that is FirstZone.
const Recipient = "recipient"

// FirstZone is a clock that none is ahead of.
var FirstZone = time.FixedZone("UTC+14", 14*60*60)

// Spread is how much later the last clock on earth is there than the first.
const Spread = 26 * time.Hour

// zoneOf is the clock that a timetable is read by.
func zoneOf(name string) (*time.Location, error) {
	if name == Recipient {
		return FirstZone, nil
	}
	return LoadZone(name)
}

// FindZone is LoadZone where the reason does not matter: it returns nil for what is no zone.
func FindZone(name string) *time.Location {
	zone, err := LoadZone(name)
	if err != nil {
		return nil
	}
	return zone
}

// LoadZone returns a zone of the IANA database by its name, UTC for an empty one. What
// depends on the machine (Local) or says no rules (an offset) is no zone of a timetable. The
// error is an *Error.
func LoadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if name == "Local" || strings.TrimSpace(name) != name {
		return nil, fault(BadZone, "zone", "%q is none of the IANA database", name)
	}
	zone, err := zones.Load(name)
	if err != nil {
		return nil, fault(BadZone, "zone", "%q is none of the IANA database", name)
	}
	return zone, nil
}

// ofMachines are names of files that machines have beside the database: what they mean, and whether
// they are there, differs between nodes.
var ofMachines = []string{"localtime", "posixrules", "posix", "right"}

// CheckZone returns why a zone cannot be asked for, as an *Error. LoadZone knows some more, which
// were stored before they were refused.
func CheckZone(name string) error {
	if first, _, _ := strings.Cut(name, "/"); slices.Contains(ofMachines, first) {
		return fault(BadZone, "zone", "%q is none of the IANA database", name)
	}
	_, err := LoadZone(name)
	return err
}
