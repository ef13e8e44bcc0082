package timetable

import (
	"strings"
	"time"
)

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
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fault(BadZone, "zone", "%q is none of the IANA database", name)
	}
	return zone, nil
}
