package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ddq-io/ddq/bench/result"
)

// Workloads are the names that Run takes.
var workloads = []string{"throughput", "lateness", "herd", "trickle", "backlog", "restart", "in-flight", "policies"}

// Run plays one workload against a system and emits its lines. The error is
// also set when a line shows a broken promise; its lines are emitted all the
// same. Everything that was started is stopped and removed when Run returns,
// also when ctx ends.
func Run(ctx context.Context, o Options, system System, workload string, emit func(result.Line) error) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	// A closed stdout (`| head`) is an error of emit; by default it would end
	// this process before anything is stopped and removed.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	var broken []error
	l := &lab{o: o, system: system, emit: func(line result.Line) error {
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
	case "policies":
		return l.policyTurns(ctx)
	}
	return fmt.Errorf("unknown workload, want one of %v", workloads)
}
