package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// board is what a demo shows: what was scheduled, what fired, and how late. It
// is safe for concurrent use.
type board struct {
	started time.Time

	mu        sync.Mutex
	scheduled int64
	fired     int64
	early     int64
	late      *hdrhistogram.Histogram // microseconds
	last      []firing                // newest last
	perSecond []int64                 // fired, by second since started
}

// firing is one task that reached its handler.
type firing struct {
	id   string
	due  time.Time
	late time.Duration
}

const lastFirings = 6

func newBoard(now time.Time) *board {
	return &board{started: now, late: hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)}
}

func (b *board) schedule(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scheduled += int64(n)
}

// fire notes that the handler of a task due at due began at now.
func (b *board) fire(id string, due, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	late := now.Sub(due)
	b.fired++
	if late < 0 {
		b.early++
	}
	_ = b.late.RecordValue(min(max(late.Microseconds(), 0), b.late.HighestTrackableValue()))
	b.last = append(b.last, firing{id, due, late})
	b.last = b.last[max(0, len(b.last)-lastFirings):]

	second := max(0, int(now.Sub(b.started)/time.Second))
	for len(b.perSecond) <= second {
		b.perSecond = append(b.perSecond, 0)
	}
	b.perSecond[second]++
}

// latePercentiles in milliseconds.
type latePercentiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// tally is a board's numbers at one moment.
type tally struct {
	ElapsedMs int64           `json:"elapsed_ms"`
	Scheduled int64           `json:"scheduled"`
	Pending   int64           `json:"pending"`
	Fired     int64           `json:"fired"`
	Early     int64           `json:"early"`
	LateMs    latePercentiles `json:"late_ms"`
}

func (b *board) tally(now time.Time) tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	return tally{
		ElapsedMs: now.Sub(b.started).Milliseconds(),
		Scheduled: b.scheduled,
		Pending:   max(0, b.scheduled-b.fired),
		Fired:     b.fired,
		Early:     b.early,
		LateMs: latePercentiles{
			P50: float64(b.late.ValueAtQuantile(50)) / 1000,
			P99: float64(b.late.ValueAtQuantile(99)) / 1000,
			Max: float64(b.late.Max()) / 1000,
		},
	}
}

func (t tally) String() string {
	return fmt.Sprintf("%3ds  scheduled %d  pending %d  fired %d  early %d  lateness p50 %.2fms p99 %.2fms max %.2fms",
		(t.ElapsedMs+500)/1000, t.Scheduled, t.Pending, t.Fired, t.Early, t.LateMs.P50, t.LateMs.P99, t.LateMs.Max)
}

// picture draws the board for a terminal.
func (b *board) picture(now time.Time, title string) string {
	t := b.tally(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	var p strings.Builder
	fmt.Fprintf(&p, "%s   %.1fs\n\n", title, float64(t.ElapsedMs)/1000)
	fmt.Fprintf(&p, "  scheduled %-8d pending %-8d fired %-8d early %d\n", t.Scheduled, t.Pending, t.Fired, t.Early)
	fmt.Fprintf(&p, "  lateness  p50 %.2f ms   p99 %.2f ms   max %.2f ms\n\n", t.LateMs.P50, t.LateMs.P99, t.LateMs.Max)
	b.drawHistogram(&p)
	fmt.Fprintf(&p, "\n  fired per second  %s\n\n  last fired\n", sparkline(b.perSecond, 40))
	for _, f := range b.last {
		fmt.Fprintf(&p, "    %s  due %s  handler began %.2f ms later\n", f.id, f.due.Local().Format("15:04:05.000"), float64(f.late.Microseconds())/1000)
	}
	return p.String()
}

// lateBounds are the upper ends of the histogram's bars, in microseconds.
var lateBounds = []int64{500, 1000, 2000, 5000, 10_000, 50_000}

func (b *board) drawHistogram(p *strings.Builder) {
	counts := make([]int64, len(lateBounds)+1)
	for _, bar := range b.late.Distribution() {
		counts[barOf(bar.To)] += bar.Count
	}
	for i, n := range counts {
		label := fmt.Sprintf("≥ %g ms", float64(lateBounds[len(lateBounds)-1])/1000)
		if i < len(lateBounds) {
			label = fmt.Sprintf("< %g ms", float64(lateBounds[i])/1000)
		}
		length := 0
		if b.fired > 0 {
			length = int((n*40 + b.fired - 1) / b.fired)
		}
		fmt.Fprintf(p, "  %9s  %-40s %d\n", label, strings.Repeat("█", min(length, 40)), n)
	}
}

func barOf(late int64) int {
	for i, bound := range lateBounds {
		if late < bound {
			return i
		}
	}
	return len(lateBounds)
}

// sparkline draws the last width values.
func sparkline(values []int64, width int) string {
	values = values[max(0, len(values)-width):]
	var top int64 = 1
	for _, v := range values {
		top = max(top, v)
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	line := make([]rune, len(values))
	for i, v := range values {
		line[i] = levels[int(v*int64(len(levels)-1)/top)]
	}
	return string(line)
}
