package timetable

import (
	_ "embed" // the names of zones
	"slices"
	"strings"
)

// zoneNames are those of the IANA database as Go comes with it, a line each: a program
// cannot list the zones that it can load.
//
//go:embed zones.txt
var zoneNames string

// nearestZones is how many names are proposed at most.
const nearestZones = 3

// NearestZones returns names of the IANA database that were perhaps meant by another one,
// the likeliest first.
func NearestZones(name string) []string {
	type candidate struct {
		name string
		far  int
	}
	var all []candidate
	wanted := plainZone(name)
	for zone := range strings.Lines(zoneNames) {
		zone = strings.TrimSuffix(zone, "\n")
		if far, near := distance(wanted, plainZone(zone)); near {
			all = append(all, candidate{zone, far})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.far - b.far })
	var names []string
	for _, c := range all[:min(len(all), nearestZones)] {
		names = append(names, c.name)
	}
	return names
}

// plainZone is what people get right of a name.
func plainZone(name string) string {
	return strings.NewReplacer(" ", "_", "-", "_", "\\", "/").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// distance is how far a name is from that of a zone, and whether it may have been meant: the
// whole name or the city with a few typos, or the city of another region.
func distance(wanted, zone string) (far int, near bool) {
	city := zone[strings.LastIndex(zone, "/")+1:]
	wantedCity := wanted[strings.LastIndex(wanted, "/")+1:]
	most := min(3, 1+len(wanted)/6)
	far = min(edits(wanted, zone), edits(wanted, city))
	if wantedCity != wanted && wantedCity == city {
		far = min(far, 1) // of another region
	}
	return far, far <= most && len(wanted) > 2
}

// edits counts the letters that are missing, added or wrong between a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, corner+cost)
		}
	}
	return row[len(b)]
}
