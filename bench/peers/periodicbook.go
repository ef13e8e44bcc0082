package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
)

// periodicBook is what the processes of a system told of its schedules. It is safe for concurrent
// use.
type periodicBook struct {
	schedules int

	mu   sync.Mutex       // guards what follows
	made map[string]int64 // occurrences by the ids of their runs
	ran  []ranRun
	seen map[string]bool // schedules of which a run has come
}

// ranRun is a handler that began.
type ranRun struct {
	schedule   string
	id         string
	attempt    int
	at         int64 // Unix us
	occurrence int64 // Unix ms; 0: told by made, if at all
}

func newPeriodicBook(schedules int) *periodicBook {
	return &periodicBook{schedules: schedules, made: make(map[string]int64), seen: make(map[string]bool)}
}

// note takes a line of a process, and reports whether it is ready with that.
func (b *periodicBook) note(line string) (ready bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "ready":
		return true, nil
	case "made":
		var id string
		var occurrence int64
		if _, err := fmt.Sscan(rest, &id, &occurrence); err != nil {
			return false, fmt.Errorf("line %q: %w", line, err)
		}
		b.made[id] = occurrence
	case "ran":
		var r ranRun
		if _, err := fmt.Sscan(rest, &r.schedule, &r.id, &r.attempt, &r.at, &r.occurrence); err != nil {
			return false, fmt.Errorf("line %q: %w", line, err)
		}
		b.seen[r.schedule] = true
		b.ran = append(b.ran, r)
	default:
		return false, fmt.Errorf("line %q", line)
	}
	return false, nil
}

// all reports whether every schedule has run.
func (b *periodicBook) all() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen) >= b.schedules
}

// named is an occurrence of a schedule.
type named struct {
	schedule string
	at       int64 // Unix ms
}

// read writes what became of the occurrences from begin to before end to a line: those that never
// ran are lost, and each run more than the first is a duplicate.
func (b *periodicBook) read(begin, end time.Time, line *result.Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	runs := make(map[named][]ranRun)
	for _, r := range b.ran {
		if at := b.occurrenceOf(&r); at >= begin.UnixMilli() && at < end.UnixMilli() {
			runs[named{r.schedule, at}] = append(runs[named{r.schedule, at}], r)
		}
	}
	late := lateness.New()
	for n, list := range runs {
		slices.SortFunc(list, func(a, b ranRun) int { return cmp.Compare(a.at, b.at) })
		off := max(1, countRuns(n, list, line))
		_ = late.RecordValue(min(off, lateness.Ceiling)) // within what it has room for
	}
	line.Tasks = b.schedules * int(end.Sub(begin)/time.Second)
	line.Lost = line.Tasks - len(runs)
	line.LateMS = lateness.Of(late)
}

// countRuns adds the runs of one occurrence, the earliest first, and returns how late that is, in us.
func countRuns(n named, list []ranRun, line *result.Line) (late int64) {
	if late = list[0].at - n.at*1000; late < 0 {
		line.Early++
	}
	attempts := make(map[string]int)
	for _, r := range list {
		switch before, again := attempts[r.id]; {
		case again && r.attempt > before:
			line.Repeat++
		case len(attempts) > 0:
			line.Duplicate++
		}
		attempts[r.id] = r.attempt
	}
	return late
}

// occurrenceOf is the occurrence of a run. One that a process made just before it was killed is of
// the second in which it ran.
func (b *periodicBook) occurrenceOf(r *ranRun) int64 {
	if r.occurrence != 0 {
		return r.occurrence
	}
	if at, told := b.made[r.id]; told {
		return at
	}
	return r.at / 1_000_000 * 1000
}
