package cells

import (
	"time"

	"github.com/ddq-io/ddq/timer/timetable"
)

// findZone returns a zone by its name; nil when there is none.
func findZone(name string) *time.Location {
	zone, err := timetable.LoadZone(name)
	if err != nil {
		return nil
	}
	return zone
}
