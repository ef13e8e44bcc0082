package audience

import (
	"slices"
	"testing"
	"time"
)

// walkThrough is a walk through shards that have so many recipients together, and come to
// their first places now.
func walkThrough(shards int, recipients int64) *Walk {
	w := &Walk{Order: Order{At: 1_000_000, Spread: Spread{Window: time.Minute, Grain: time.Second}}}
	w.Begin(&Audience{Shards: shards}, Kind{}, recipients)
	for n := range w.Paths {
		w.Paths[n].Tracks = []Track{{}}
	}
	return w
}

func TestAStepTakesAsManyShardsAsMakeABatch(t *testing.T) {
	pace := Pace{Lead: 30 * time.Second, Gather: 10 * time.Second, Batch: 500}
	for name, test := range map[string]struct {
		shards     int
		recipients int64
		most, want int
	}{
		"one of many recipients":    {shards: 8, recipients: 80_000, most: 16, want: 1},
		"some that are one batch":   {shards: 8, recipients: 2_000, most: 16, want: 4}, // 129 each within the lead
		"all that are less":         {shards: 8, recipients: 80, most: 16, want: 8},
		"so many as are allowed":    {shards: 64, recipients: 64, most: 16, want: 16},
		"one that is there":         {shards: 1, recipients: 1_000_000, most: 16, want: 1},
		"those without recipients":  {shards: 4, most: 16, want: 4},
		"none of those that follow": {shards: 4, recipients: 80_000, most: 1, want: 1},
	} {
		w := walkThrough(test.shards, test.recipients)
		if got := w.Shards(w.At, pace, test.most); len(got) != test.want || got[0] != 0 {
			t.Errorf("%s: shards %v, want %d from the first", name, got, test.want)
		}
	}
}

func TestAStepTakesShardsInOrderOfPlaces(t *testing.T) {
	pace := Pace{Lead: 30 * time.Second, Gather: 10 * time.Second, Batch: 500}
	w := walkThrough(4, 40)
	for n, at := range []time.Duration{50 * time.Second, 20 * time.Second, 0, 10 * time.Second} {
		w.Paths[n].Tracks[0].Next, _ = w.until(at)
	}
	w.Paths[2].Tracks[0].Done = true
	if got := w.Shards(w.At, pace, 16); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("shards %v; want the two of the next 25 s, the earlier first", got)
	}
}

func TestALateWalkGoesLessFarAheadInAShard(t *testing.T) {
	pace := Pace{Lead: 30 * time.Second, Gather: 10 * time.Second, Batch: 500, CatchUp: 2 * time.Second}
	w := walkThrough(2, 100)
	dir := &Directory{Zones: []*Zone{{Recipients: 50}}}
	for late, want := range map[time.Duration]time.Duration{0: 31 * time.Second, 5 * time.Second: 8 * time.Second} {
		s := w.Next(0, dir, w.At.Add(late), pace)
		if got := w.Place(s.last + 1); got != want {
			t.Errorf("%v late it goes up to %v, want %v", late, got, want)
		}
	}
}
