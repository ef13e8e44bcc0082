package timetable

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// distances is how many occurrences are looked at to see how close they lie.
const distances = 1000

// Jitter returns the due time of an occurrence: up to width later, the same for
// the same life of a schedule and the same occurrence. Width 0 is none.
func Jitter(life uint64, occurrence time.Time, width time.Duration) time.Time {
	if width <= 0 {
		return occurrence
	}
	var key [16]byte
	binary.BigEndian.PutUint64(key[:8], life)
	binary.BigEndian.PutUint64(key[8:], uint64(occurrence.UnixMilli()))
	sum := sha256.Sum256(key[:])
	shift := binary.BigEndian.Uint64(sum[:8]) % uint64(width.Milliseconds()+1)
	return occurrence.Add(time.Duration(shift) * time.Millisecond)
}

// Distance is the smallest distance between two of the next 1,000 occurrences after a time;
// 0 when there are no two.
func (t *Timetable) Distance(after time.Time) time.Duration { return t.smallestDistance(after) }

// smallestDistance returns 0 when there are no two occurrences.
func (t *Timetable) smallestDistance(after time.Time) time.Duration {
	if t.fromEnd > 0 {
		return t.fromEnd
	}
	var smallest time.Duration
	before, _ := t.Next(after)
	for range distances {
		at, ok := t.Next(before)
		if !ok {
			break
		}
		if d := at.Sub(before); smallest == 0 || d < smallest {
			smallest = d
		}
		before = at
	}
	return smallest
}
