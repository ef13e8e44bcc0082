package bench

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/ddq-io/ddq/bench/result"
)

// handSet is what the default of a worker's tasks in flight is compared with.
var handSet = []int{256, 1024, 4096, maxInFlight}

const (
	inFlightRounds = 3
	inFlightTasks  = 60_000                  // timedTasks of them make the herd
	inFlightFor    = 1500 * time.Millisecond // of work of the handlers, where they take their time
	inFlightLead   = 1500 * time.Millisecond // before the herd is due
)

// inFlight compares the default of a worker's tasks in flight with numbers set by hand: in
// turns, a worker process each, on one server. A line has the medians of one of them:
// producers and worker at once, and a herd.
func (l *lab) inFlight(ctx context.Context) error {
	settings := append([]int{0}, handSet...)
	lines := make([][]result.Line, len(settings))
	for round := range inFlightRounds + 1 { // the first is the warm-up
		for i, most := range settings {
			line, err := l.inFlightOf(ctx, most)
			if err != nil {
				return err
			}
			if round > 0 {
				lines[i] = append(lines[i], line)
			}
		}
	}
	for _, of := range lines {
		if err := l.emit(medianLine(of)); err != nil {
			return err
		}
	}
	return nil
}

// inFlightOf measures one setting with a worker process of its own.
func (l *lab) inFlightOf(ctx context.Context, most int) (line result.Line, err error) {
	if err := l.host.close(); err != nil {
		return line, err
	}
	o := l.o
	o.InFlight = most
	if l.host, err = startWorker(l.box, o, l.system.Name, l.inst.Target); err != nil {
		return line, err
	}
	if err := l.host.work(ctx); err != nil {
		return line, err
	}
	n := l.inFlightTasks()
	line = l.line("in-flight", n)
	line.Mode, line.InFlight = "batch", "default"
	if most > 0 {
		line.InFlight = strconv.Itoa(most)
	}
	if err := l.endToEnd(ctx, "batch", &line); err != nil {
		return line, err
	}
	herd, _, err := l.due(ctx, "in-flight", min(n, timedTasks), inFlightLead, func(int) time.Duration { return 0 })
	line.FirstMS, line.LastMS, line.LateMS = herd.FirstMS, herd.LastMS, herd.LateMS
	line.Early += herd.Early
	line.Lost += herd.Lost
	line.Duplicate += herd.Duplicate
	line.Repeat += herd.Repeat
	return line, err
}

// inFlightTasks is as many tasks as keep the handlers busy for a while.
func (l *lab) inFlightTasks() int {
	n := l.o.tasks(inFlightTasks)
	if l.o.Hold > 0 {
		n = min(n, int(inFlightFor/l.o.Hold)*l.o.Concurrency)
	}
	return n
}

// medianLine has the medians of what several runs of one setting measured, and the sum of
// the promises that they broke.
func medianLine(runs []result.Line) result.Line {
	line := runs[0]
	for _, r := range runs[1:] {
		line.Early += r.Early
		line.Lost += r.Lost
		line.Duplicate += r.Duplicate
		line.Repeat += r.Repeat
	}
	of := func(figure func(result.Line) float64) float64 {
		all := make([]float64, len(runs))
		for i, r := range runs {
			all[i] = figure(r)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	line.EndToEndPerS = of(func(l result.Line) float64 { return l.EndToEndPerS })
	line.EnqueuePerS = of(func(l result.Line) float64 { return l.EnqueuePerS })
	line.ProcessPerS = of(func(l result.Line) float64 { return l.ProcessPerS })
	line.CPU.Client = of(func(l result.Line) float64 { return l.CPU.Client })
	line.CPU.Server = of(func(l result.Line) float64 { return l.CPU.Server })
	line.CPU.Store = of(func(l result.Line) float64 { return l.CPU.Store })
	line.CPUPer100k = of(func(l result.Line) float64 { return l.CPUPer100k })
	line.FirstMS = of(func(l result.Line) float64 { return l.FirstMS })
	line.LastMS = of(func(l result.Line) float64 { return l.LastMS })
	return line
}
