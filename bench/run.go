package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Workloads are the names that Run takes.
var workloads = []string{"throughput", "lateness", "herd", "trickle", "backlog", "restart", "in-flight"}

// Run plays one workload against a system and emits its lines. The error is
// also set when a line shows a broken promise; its lines are emitted all the
// same. Everything that was started is stopped and removed when Run returns,
// also when ctx ends.
func Run(ctx context.Context, o Options, system System, workload string, emit func(Line) error) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	// A closed stdout (`| head`) is an error of emit; by default it would end
	// this process before anything is stopped and removed.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	var broken []error
	l := &lab{o: o, system: system, emit: func(line Line) error {
		broken = append(broken, line.Violation())
		return emit(line)
	}}
	defer func() {
		if downErr := l.tearDown(ctx); downErr != nil && err == nil {
			err = fmt.Errorf("stopping %s: %w", system.Name, downErr)
		}
	}()
	if workload == "restart" {
		l.o.Hold = restartHold
	}
	if err := l.setUp(ctx); err != nil {
		return err
	}
	if err := l.play(ctx, workload); err != nil {
		return fmt.Errorf("%s %s: %w", system.Name, workload, err)
	}
	return errors.Join(broken...)
}

func (l *lab) play(ctx context.Context, workload string) error {
	switch workload {
	case "backlog":
		return l.backlog(ctx)
	case "restart":
		return l.restart(ctx)
	}
	if _, err := l.preload(ctx, l.o.backlog(standingTasks)); err != nil {
		return err
	}
	switch workload {
	case "throughput":
		return l.throughput(ctx)
	case "lateness":
		return l.lateness(ctx)
	case "herd":
		return l.herd(ctx)
	case "in-flight":
		return l.inFlight(ctx)
	case "trickle":
		return l.trickle(ctx)
	}
	return fmt.Errorf("unknown workload, want one of %v", workloads)
}

// Results collects lines and writes them: JSON at once, tables at the end.
type Results struct {
	Out    io.Writer
	Format string // table or json
	Chart  string // file of the lateness distribution, "" for none
	lines  []Line
}

// Validate returns what is wrong with the format, nil when nothing is.
func (r *Results) Validate() error {
	if r.Format != "table" && r.Format != "json" {
		return fmt.Errorf("--output is %q, want table or json", r.Format)
	}
	return nil
}

// Add takes one line.
func (r *Results) Add(l Line) error {
	r.lines = append(r.lines, l)
	if r.Format == "json" {
		return WriteJSON(r.Out, l)
	}
	return nil
}

// Close writes what is left to write.
func (r *Results) Close() error {
	if r.Format != "json" && len(r.lines) > 0 {
		if err := WriteTables(r.Out, r.lines); err != nil {
			return err
		}
	}
	if r.Chart == "" || len(r.lines) == 0 {
		return nil
	}
	return WriteChart(r.Chart, r.lines)
}
