package zones

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"time"
)

// change is from when on a zone has an offset, in seconds.
type change struct {
	at     time.Time
	offset int32
	name   string // of the offset; it does not count
}

// zone makes one that begins with UTC, from a file as the database has them.
func zone(t *testing.T, name string, changes ...change) *time.Location {
	t.Helper()
	be := binary.BigEndian
	file := append([]byte("TZif2"), make([]byte, 15+6*4)...) // the part of 32 bits is empty
	file = append(file, "TZif2"...)
	file = append(file, make([]byte, 15)...)
	abbreviations := "UTC\x00"
	var offsets []byte
	offsets = append(be.AppendUint32(offsets, 0), 0, 0)
	for _, c := range changes {
		offsets = append(be.AppendUint32(offsets, uint32(c.offset)), 0, byte(len(abbreviations)))
		abbreviations += c.name + "\x00"
	}
	for _, n := range []int{0, 0, 0, len(changes), len(changes) + 1, len(abbreviations)} {
		file = be.AppendUint32(file, uint32(n))
	}
	for _, c := range changes {
		file = be.AppendUint64(file, uint64(c.at.Unix()))
	}
	for i := range changes {
		file = append(file, byte(i+1))
	}
	file = slices.Concat(file, offsets, []byte(abbreviations), []byte("\n\n"))
	location, err := time.LoadLocationFromTZData(name, file)
	if err != nil {
		t.Fatal(err)
	}
	return location
}

func day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 1, 0, 0, 0, time.UTC)
}

// summer is a zone with one summer in each of some years.
func summer(from, to int) (changes []change) {
	for year := from; year <= to; year++ {
		changes = append(changes, change{day(year, 3, 28), 3600, "SUM"}, change{day(year, 10, 30), 0, "WIN"})
	}
	return changes
}

// database has two zones, edited.
func database(t *testing.T, edit func(map[string]*time.Location)) (names []string, look func(string) *time.Location) {
	all := map[string]*time.Location{"A/Fixed": zone(t, "A/Fixed"), "A/Summer": zone(t, "A/Summer", summer(2020, 2040)...)}
	if edit != nil {
		edit(all)
	}
	return []string{"A/Fixed", "A/Gone", "A/Summer", "B/New"}, func(name string) *time.Location { return all[name] }
}

func TestRulesAreTheSameForTheSameZones(t *testing.T) {
	names, look := database(t, nil)
	const want = 0x7ea_67c9fe4adff9 // of 2026: another one makes nodes of this version differ from those of before
	first, last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, at := range []time.Time{first, last, last.In(time.FixedZone("", 10*3600))} {
		if got := rulesOf(names, at, look); got != want {
			t.Errorf("at %v: %#x, want %#x", at, got, uint64(want))
		}
	}
	for what, edit := range map[string]func(map[string]*time.Location){
		"the abbreviations": func(all map[string]*time.Location) {
			changes := summer(2020, 2040)
			for i := range changes {
				changes[i].name = "XYZ"
			}
			all["A/Summer"] = zone(t, "A/Summer", changes...)
		},
		"a change to the same offset": func(all map[string]*time.Location) {
			all["A/Fixed"] = zone(t, "A/Fixed", change{day(2027, 5, 1), 0, "GMT"})
		},
		"what was before the year":      func(all map[string]*time.Location) { all["A/Summer"] = zone(t, "A/Summer", summer(2025, 2040)...) },
		"what is behind the years":      func(all map[string]*time.Location) { all["A/Summer"] = zone(t, "A/Summer", summer(2020, 2028)...) },
		"a zone that has no known name": func(all map[string]*time.Location) { all["C/Unknown"] = zone(t, "C/Unknown") },
	} {
		names, look := database(t, edit)
		if got := rulesOf(names, first, look); got != want {
			t.Errorf("%s counts: %#x", what, got)
		}
	}
}

func TestRulesDifferWithEachChange(t *testing.T) {
	at := day(2026, 6, 1)
	found := make(map[Rules]string)
	for what, edit := range map[string]func(map[string]*time.Location){
		"as it is":     nil,
		"a zone less":  func(all map[string]*time.Location) { delete(all, "A/Fixed") },
		"a zone more":  func(all map[string]*time.Location) { all["B/New"] = zone(t, "B/New") },
		"another name": func(all map[string]*time.Location) { all["B/New"] = all["A/Fixed"]; delete(all, "A/Fixed") },
		"another offset": func(all map[string]*time.Location) {
			all["A/Fixed"] = zone(t, "A/Fixed", change{day(2001, 1, 1), 60, "X"})
		},
		"a summer less":    func(all map[string]*time.Location) { all["A/Summer"] = zone(t, "A/Summer", summer(2020, 2027)...) },
		"exchanged":        func(all map[string]*time.Location) { all["A/Summer"], all["A/Fixed"] = all["A/Fixed"], all["A/Summer"] },
		"a second later":   func(all map[string]*time.Location) { all["A/Summer"] = zone(t, "A/Summer", moved(time.Second)...) },
		"a second earlier": func(all map[string]*time.Location) { all["A/Summer"] = zone(t, "A/Summer", moved(-time.Second)...) },
	} {
		names, look := database(t, edit)
		got := rulesOf(names, at, look)
		if other, there := found[got]; there {
			t.Errorf("%s and %s are the same: %#x", what, other, got)
		}
		found[got] = what
	}
	all := slices.Collect(maps.Keys(found))
	for i, r := range all[1:] {
		if !r.DifferFrom(all[i]) || r.DifferFrom(r) {
			t.Errorf("%#x and %#x", r, all[i])
		}
	}
}

// moved is summer with the last change of the digest's years at another time.
func moved(by time.Duration) []change {
	changes := summer(2020, 2040)
	last := slices.IndexFunc(changes, func(c change) bool { return c.at.Equal(day(2028, 10, 30)) })
	changes[last].at = changes[last].at.Add(by)
	return changes
}

func TestRulesOfOtherYearsDoNotDiffer(t *testing.T) {
	names, look := database(t, nil)
	before, after := rulesOf(names, day(2026, 12, 31), look), rulesOf(names, day(2027, 1, 1), look)
	if before == after || before.DifferFrom(after) || after.DifferFrom(before) {
		t.Errorf("%#x and %#x", before, after)
	}
	if before.DifferFrom(0) || Rules(0).DifferFrom(before) {
		t.Error("what is not known differs")
	}
}

func TestZonesThatAreOnlyLookedAtAreNotKept(t *testing.T) {
	tokyo := table{known: make(map[string]*time.Location)}
	if tokyo.look("Asia/Tokyo") == nil || tokyo.look("Asia/Nowhere") != nil || len(tokyo.known) != 0 {
		t.Errorf("%d kept", len(tokyo.known))
	}
	tokyo.known["Asia/Tokyo"] = time.UTC // as a file of before had it
	if got := tokyo.look("Asia/Tokyo"); got != time.UTC {
		t.Errorf("%v, and %v is in use", got, time.UTC)
	}
}
