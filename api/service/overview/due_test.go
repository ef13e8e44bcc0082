package overview

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
)

// What an owner has in memory behind what it knows whole is read from the store, and not
// counted twice.
func TestATaskIsCountedOnce(t *testing.T) {
	soon := fleet.DueSoon{From: 1000, Until: 3000, Counts: []int64{1, 2, 4}}
	for name, c := range map[string]struct {
		load  *fleet.OwnedShard
		until store.Millis
		want  []int64
	}{
		"nobody answers":               {nil, 1000, []int64{0, 0, 0}},
		"an owner that does not count": {&fleet.OwnedShard{Wheel: 7}, 1000, []int64{0, 0, 0}},
		"it knows a part":              {&fleet.OwnedShard{Wheel: 7, DueSoon: soon}, 3000, []int64{1, 2, 0}},
		"it knows all":                 {&fleet.OwnedShard{Wheel: 9, DueSoon: soon}, 61_000, []int64{1, 2, 4}},
		"its clock is a second behind": {&fleet.OwnedShard{Wheel: 9, DueSoon: fleet.DueSoon{Until: 2000, Counts: []int64{8, 1}}}, 61_000, []int64{1, 0, 0}},
		"it knows of nothing any more": {&fleet.OwnedShard{DueSoon: fleet.DueSoon{From: 1000, Until: 1000, Counts: []int64{8}}}, 1000, []int64{0, 0, 0}},
	} {
		d := newDue(1000)
		until := d.owned(c.load, &store.Stats{Pending: 10, Ready: 1})
		if until != c.until || fmt.Sprint(d.counts[:3]) != fmt.Sprint(c.want) {
			t.Errorf("%s: until %d %v, want %d %v", name, until, d.counts[:3], c.until, c.want)
		}
	}
}
