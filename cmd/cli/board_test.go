package cli

import (
	"strings"
	"testing"
	"time"
)

func TestBoardTallies(t *testing.T) {
	start := at("2030-01-01T00:00:00Z")
	b := newBoard(start)
	b.schedule(5)
	for i, late := range []time.Duration{time.Millisecond, time.Millisecond, 3 * time.Millisecond} {
		due := start.Add(time.Duration(i) * time.Second)
		b.fire("task", due, due.Add(late))
	}
	got := b.tally(start.Add(2500 * time.Millisecond))
	want := tally{ElapsedMs: 2500, Scheduled: 5, Pending: 2, Fired: 3, LateMs: latePercentiles{P50: 1, P99: 3.001, Max: 3.001}}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestBoardCountsEarlyTasks(t *testing.T) {
	start := at("2030-01-01T00:00:00Z")
	b := newBoard(start)
	b.schedule(1)
	b.fire("task", start.Add(time.Second), start.Add(time.Second-time.Microsecond))
	if got := b.tally(start.Add(time.Second)); got.Early != 1 {
		t.Errorf("early = %d, want 1", got.Early)
	}
}

func TestPictureFitsATerminal(t *testing.T) {
	start := at("2030-01-01T00:00:00Z")
	b := newBoard(start)
	b.schedule(1_000_000)
	for i := range 1000 {
		due := start.Add(time.Duration(i) * 100 * time.Millisecond)
		b.fire("task-1893456000000-000000", due, due.Add(time.Duration(i)*time.Millisecond))
	}
	picture := b.picture(start.Add(100*time.Second), "ddq demo")
	for line := range strings.Lines(picture) {
		if n := len([]rune(line)); n > 90 {
			t.Errorf("line of %d characters: %s", n, line)
		}
	}
	if !strings.Contains(picture, "fired 1000") {
		t.Errorf("picture lacks the count:\n%s", picture)
	}
}

func TestSparkline(t *testing.T) {
	for _, tc := range []struct {
		values []int64
		want   string
	}{
		{nil, ""},
		{[]int64{0, 0}, "▁▁"},
		{[]int64{0, 7, 14}, "▁▄█"},
		{[]int64{9, 1, 2, 3}, "▃▅█"}, // the last three
	} {
		if got := sparkline(tc.values, 3); got != tc.want {
			t.Errorf("sparkline(%v) = %s, want %s", tc.values, got, tc.want)
		}
	}
}
