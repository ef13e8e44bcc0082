package tally

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

func TestTallyCountsViolations(t *testing.T) {
	due := time.UnixMilli(1_000)
	type delivery struct {
		task, attempt int
		start         time.Time
	}
	on, late := due, due.Add(time.Second)
	tests := []struct {
		name                           string
		acknowledged                   []int
		deliveries                     []delivery
		lost, early, duplicate, repeat int
	}{
		{name: "each once", acknowledged: []int{0, 1}, deliveries: []delivery{{0, 1, on}, {1, 1, late}}},
		{name: "never delivered", acknowledged: []int{0, 1, 70}, deliveries: []delivery{{0, 1, on}}, lost: 2},
		{name: "delivered without an answer is no loss", deliveries: []delivery{{0, 1, on}}},
		{name: "a nanosecond early", acknowledged: []int{0}, deliveries: []delivery{{0, 1, due.Add(-1)}}, early: 1},
		{name: "higher attempt is legal", acknowledged: []int{0}, deliveries: []delivery{{0, 1, on}, {0, 2, late}}, repeat: 1},
		{name: "same attempt again", acknowledged: []int{0}, deliveries: []delivery{{0, 1, on}, {0, 1, late}}, duplicate: 1},
		{name: "older attempt after a newer", acknowledged: []int{0}, deliveries: []delivery{{0, 2, on}, {0, 1, late}}, duplicate: 1},
		{name: "attempts are not told", acknowledged: []int{0}, deliveries: []delivery{{0, 0, on}, {0, 0, late}}, duplicate: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := New(100)
			for _, i := range test.acknowledged {
				l.Acknowledge(i)
			}
			for _, d := range test.deliveries {
				l.Deliver(d.task, d.attempt, due, d.start)
			}
			got := [4]int{l.Lost(l.Delivered()), l.early, l.duplicate, l.repeat}
			if want := [4]int{test.lost, test.early, test.duplicate, test.repeat}; got != want {
				t.Errorf("lost, early, duplicate, repeat: got %v, want %v", got, want)
			}
		})
	}
}

// TestTallyFindsSeededViolations hides a known number of each violation in a
// large run.
func TestTallyFindsSeededViolations(t *testing.T) {
	const n, lost, early, duplicate, repeat = 10_000, 7, 11, 13, 17
	due := time.UnixMilli(1_000)
	r := rand.New(rand.NewPCG(1, 2))
	l := New(n)
	for rank, i := range r.Perm(n) {
		l.Acknowledge(i)
		start := due.Add(time.Duration(r.IntN(1e9)))
		switch {
		case rank < lost:
			continue
		case rank < lost+early:
			start = due.Add(-time.Duration(1 + r.IntN(1e6)))
		case rank < lost+early+duplicate:
			l.Deliver(i, 1, due, start)
		case rank < lost+early+duplicate+repeat:
			l.Deliver(i, 1, due, start)
			l.Deliver(i, 2, due, start)
			continue
		}
		l.Deliver(i, 1, due, start)
	}
	got := [4]int{l.Lost(l.Delivered()), l.early, l.duplicate, l.repeat}
	if want := [4]int{lost, early, duplicate, repeat}; got != want {
		t.Errorf("lost, early, duplicate, repeat: got %v, want %v", got, want)
	}
	if got, want := count(l.Delivered()), n-lost; got != want {
		t.Errorf("delivered: got %d, want %d", got, want)
	}
}

func count(delivered []uint64) (n int) {
	for _, word := range delivered {
		n += bits.OnesCount64(word)
	}
	return n
}
