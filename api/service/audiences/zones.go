package audiences

import (
	"sync"
	"time"

	"github.com/ddq-io/ddq/timer/timetable"
)

// zones knows the names of zones that were asked for. To load one takes a read of a file.
type zones struct {
	known sync.Map // name -> *time.Location
}

func newZones() *zones { return new(zones) }

// find returns a zone, or nil. What is no zone is not remembered.
func (z *zones) find(name string) *time.Location {
	if known, there := z.known.Load(name); there {
		return known.(*time.Location)
	}
	zone, err := timetable.LoadZone(name)
	if err != nil {
		return nil
	}
	z.known.Store(name, zone)
	return zone
}
