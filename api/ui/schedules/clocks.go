package schedules

import (
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/ddq-io/ddq/api/ui/frame"
	"github.com/ddq-io/ddq/timer/zones"
)

// clockChange is when the clocks of a zone change.
type clockChange struct{ before, after time.Time }

// clockChanges are those of a year from now on.
func clockChanges(zone string, now time.Time) (all []clockChange) {
	if zone == "" || zone == "recipient" {
		return nil
	}
	place, err := zones.Load(zone)
	if err != nil {
		return nil
	}
	for at, until := now.In(place), now.AddDate(1, 0, 0); ; {
		_, end := zones.Bounds(at)
		if end.IsZero() || end.After(until) {
			return all
		}
		_, was := at.Zone()
		_, is := end.Zone()
		if was != is {
			all = append(all, clockChange{end.In(time.FixedZone("", was)), end})
		}
		at = end
	}
}

// clockNote says that clocks change within the year, and what that does to runs.
func clockNote(zone string, now time.Time) g.Node {
	var all []string
	for _, c := range clockChanges(zone, now) {
		all = append(all, "on "+c.before.Format("2006-01-02")+" from "+c.before.Format("15:04")+" to "+c.after.Format("15:04"))
	}
	if len(all) == 0 {
		return nil
	}
	return frame.Warning("The clocks of " + frame.Cut(zone) + " change within a year: " + strings.Join(all, ", ") + "." +
		" An hour that a cron expression names runs once on such a day: at the first instant after a gap, and the first time where an hour comes twice. With * as the hour, each instant that matches counts. An interval keeps to elapsed time.")
}
