package zones

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"
)

// Rules is a digest of when zones change their offset from UTC, in a year and the two after it. Its
// first 16 bits are the year; 0 says that nothing is known.
type Rules uint64

// ruleYears is how many years a digest is of, so that it covers the next two at any time of the first.
const ruleYears = 3

// yearBits are those of a digest that are not the year.
const yearBits = 48

// DifferFrom reports whether two digests of the same years are of other rules.
func (r Rules) DifferFrom(other Rules) bool { return r != other && r>>yearBits == other>>yearBits }

// RulesOf returns the digest of the zones of some names from the year of an instant on. Zones that were
// loaded before count as they are since then; the others are read, and not kept.
func RulesOf(names []string, at time.Time) Rules { return rulesOf(names, at, loaded.look) }

// look returns a zone as Load would, without keeping it; nil when there is none.
func (t *table) look(name string) *time.Location {
	if zone := t.find(name); zone != nil {
		return zone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}

func rulesOf(names []string, at time.Time, look func(name string) *time.Location) Rules {
	year := at.UTC().Year()
	from, to := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year+ruleYears, 1, 1, 0, 0, 0, 0, time.UTC)
	h := sha256.New()
	for _, name := range names {
		if zone := look(name); zone != nil {
			addString(h, name)
			addChanges(h, zone, from, to)
		}
	}
	return Rules(year)<<yearBits | Rules(binary.BigEndian.Uint64(h.Sum(nil))>>(64-yearBits))
}

// addChanges adds the offset of a zone at the first of two instants, and each change until the other.
// Where the database has a change that leaves the offset as it is, the zone has none.
func addChanges(h hash.Hash, zone *time.Location, from, to time.Time) {
	last := offsetAt(from, zone)
	addNumber(h, last)
	for t := nextChange(from, zone); !t.IsZero() && t.Before(to); t = nextChange(t, zone) {
		if offset := offsetAt(t, zone); offset != last {
			addNumber(h, t.Unix())
			addNumber(h, offset)
			last = offset
		}
	}
}

func offsetAt(t time.Time, zone *time.Location) int64 {
	_, offset := t.In(zone).Zone()
	return int64(offset)
}

// nextChange is the zero time when there is none.
func nextChange(t time.Time, zone *time.Location) time.Time {
	_, end := Bounds(t.In(zone))
	return end
}

func addNumber(h hash.Hash, n int64) {
	h.Write(binary.BigEndian.AppendUint64(make([]byte, 0, 8), uint64(n)))
}

func addString(h hash.Hash, s string) {
	addNumber(h, int64(len(s)))
	h.Write([]byte(s))
}
