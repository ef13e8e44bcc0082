package cells

import (
	"time"

	"github.com/ddq-io/ddq/timer/timetable"
)

// zoneTable has the zones that were asked for; to load one takes a read of a file. One look
// at a time uses it.
type zoneTable map[string]*time.Location

func (t zoneTable) find(name string) *time.Location {
	if zone, there := t[name]; there {
		return zone
	}
	zone, err := timetable.LoadZone(name)
	if err != nil {
		zone = nil
	}
	t[name] = zone
	return zone
}
