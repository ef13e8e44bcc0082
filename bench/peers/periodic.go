package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ddq-io/ddq/bench"
)

// periodicDriver is a driver of a system that makes the runs of schedules by itself.
type periodicDriver interface {
	bench.Driver
	// Periodic puts the schedules, makes their runs and works on them until ctx ends.
	Periodic(ctx context.Context, s *periodicSession) error
}

// periodicSession is what a process of the workload schedules asks of a driver. What happens goes
// out line by line as it does, so that the harness has it when the process is killed:
//
//	ready                                    schedules are put, and their runs are worked on
//	made ID OCCURRENCE                       a run was made, of systems whose handlers do not know the occurrence
//	ran SCHEDULE ID ATTEMPT AT OCCURRENCE    a handler began; OCCURRENCE is 0 where it does not know it
//
// AT is in Unix microseconds, OCCURRENCE in Unix milliseconds.
type periodicSession struct {
	schedules   int // their names are the numbers from 0; each has an occurrence at every whole second
	concurrency int // handlers at a time

	mu  sync.Mutex
	out io.Writer // guarded by mu
}

func (s *periodicSession) ready() { s.tell("ready\n") }

func (s *periodicSession) made(id string, occurrence time.Time) {
	s.tell("made %s %d\n", id, occurrence.UnixMilli())
}

// ran is called at the begin of a handler; occurrence is zero where nobody knows it.
func (s *periodicSession) ran(schedule, id string, attempt int, occurrence time.Time) {
	at, ms := time.Now().UnixMicro(), int64(0)
	if !occurrence.IsZero() {
		ms = occurrence.UnixMilli()
	}
	s.tell("ran %s %s %d %d %d\n", schedule, id, attempt, at, ms)
}

func (s *periodicSession) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...) // without a harness nobody reads it
}

// periodicCommand is the hidden command of a process of the workload schedules, in one setup.
func periodicCommand(setup string) *cobra.Command {
	var name, target string
	var s periodicSession
	cmd := &cobra.Command{
		Use:    periodicName(setup),
		Short:  "Be one of the processes that make runs of schedules and work on them",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.out = cmd.OutOrStdout()
			for _, system := range systems(setup) {
				if system.Name == name {
					return servePeriodic(cmd.Context(), &system, target, &s)
				}
			}
			return fmt.Errorf("no system is called %q", name)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "system", "", "system under test")
	f.StringVar(&target, "target", "", "where it runs")
	f.IntVar(&s.schedules, "schedules", 1000, "schedules")
	f.IntVar(&s.concurrency, "concurrency", 64, "handlers at a time")
	return cmd
}

func periodicName(setup string) string { return "periodic-" + setup }

func servePeriodic(ctx context.Context, system *bench.System, target string, s *periodicSession) (err error) {
	d, err := system.Dial(ctx, target)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // the process ends with it
	p, ok := d.(periodicDriver)
	if !ok {
		return fmt.Errorf("%s has no schedules", system.Name)
	}
	return p.Periodic(ctx, s)
}
