package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/result"
)

const (
	// periodicReady bounds how long a process may take to put the schedules, and how long it may
	// take then until each has run.
	periodicReady = 90 * time.Second
	// periodicRest is how long behind the last occurrence runs may come.
	periodicRest = 30 * time.Second
)

// periodicSystem is a peer that has schedules.
type periodicSystem struct {
	name string
	open func(ctx context.Context, o bench.Options, b *box.Box) (*bench.Instance, error)
	// process is the command line of one of its processes, when it is open.
	process func(inst *bench.Instance) *exec.Cmd
}

// withSchedules are the peers that have schedules, in one setup.
func (p *plan) withSchedules(setup string) (all []periodicSystem) {
	for _, s := range systems(setup) {
		if s.Name != "asynq" && s.Name != "river" {
			continue
		}
		all = append(all, periodicSystem{s.Name, s.Open, func(inst *bench.Instance) *exec.Cmd {
			return exec.Command(p.executable, periodicName(setup), "--system", s.Name, "--target", inst.Target,
				"--schedules", strconv.Itoa(p.schedules), "--concurrency", strconv.Itoa(p.options.Concurrency))
		}})
	}
	if setup == result.SetupDefault {
		all = append(all, p.bullMQ())
	}
	return all
}

// playSchedules plays schedules of every second on a system whose runs two processes make and work
// on. One of them is killed in the middle, and stays dead.
func (p *plan) playSchedules(ctx context.Context, setup, name string, emit func(result.Line) error) (err error) {
	if name == "ddq" {
		if setup != result.SetupDefault { // there is nothing to tune
			return nil
		}
		return p.playSchedulesOfDDQ(ctx, emit)
	}
	all := p.withSchedules(setup)
	i := slices.IndexFunc(all, func(s periodicSystem) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	b, err := box.New()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	inst, err := all[i].open(ctx, p.options, b)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	stage := &periodicStage{box: b, inst: inst, book: newPeriodicBook(p.schedules)}
	for n := range 2 {
		if err := stage.start(ctx, fmt.Sprint("periodic-", n), all[i].process(inst)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	line := result.Line{
		Schema: 1, System: name, Version: inst.Version, Workload: result.WorkloadSchedules, Store: inst.Store,
		Settings: inst.Settings + "; two processes that make runs and work on them, of which one is killed in the middle",
		Seed:     p.options.Seed, Concurrency: p.options.Concurrency, Rate: p.schedules, Machine: result.Machine(),
	}
	if err := stage.play(ctx, p.schedulesFor, &line); err != nil {
		return fmt.Errorf("%s schedules: %w", name, err)
	}
	return emit(line)
}

// periodicStage is a running system with its processes.
type periodicStage struct {
	box       *box.Box
	inst      *bench.Instance
	book      *periodicBook
	processes []*box.Process
}

// start starts a process, and waits until it is ready. The goroutine that reads what it tells ends
// with it.
func (s *periodicStage) start(ctx context.Context, name string, cmd *exec.Cmd) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = write
	process, err := s.box.Start(name, cmd)
	write.Close()
	if err != nil {
		return errors.Join(err, read.Close())
	}
	s.processes = append(s.processes, process)
	ready := make(chan struct{})
	go s.read(read, sync.OnceFunc(func() { close(ready) }))
	select {
	case <-ready:
		return nil
	case <-process.Done():
		return fmt.Errorf("%s ended:\n%s", name, process.Tail())
	case <-time.After(periodicReady):
		return fmt.Errorf("%s is not ready after %v:\n%s", name, periodicReady, process.Tail())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read notes what a process tells. What it says besides, or had half said when it was killed, is
// nothing to note.
func (s *periodicStage) read(from io.ReadCloser, ready func()) {
	defer from.Close()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		if is, err := s.book.note(lines.Text()); err == nil && is {
			ready()
		}
	}
}

// play waits until every schedule runs, has a process killed in the middle of a time, and fills in
// what became of the occurrences of that time.
func (s *periodicStage) play(ctx context.Context, d time.Duration, line *result.Line) error {
	if err := s.until(ctx, periodicReady, s.book.all); err != nil {
		return fmt.Errorf("wait for a run of each schedule: %w", err)
	}
	begin := time.Now().Truncate(time.Second).Add(2 * time.Second)
	end := begin.Add(d)
	if err := sleep(ctx, time.Until(begin)); err != nil {
		return err
	}
	before := s.usage()
	if err := sleep(ctx, d/2); err != nil {
		return err
	}
	if err := s.processes[0].Kill(); err != nil {
		return err
	}
	if err := sleep(ctx, time.Until(end)); err != nil {
		return err
	}
	after := s.usage()
	line.Seconds = d.Seconds()
	line.CPU = result.Roles{Client: after.Client - before.Client, Server: after.Server - before.Server, Store: after.Store - before.Store}
	if err := sleep(ctx, periodicRest); err != nil {
		return err
	}
	s.book.read(begin, end, line)
	return nil
}

// usage is what every party used up to now, in seconds.
func (s *periodicStage) usage() result.Roles {
	sum := func(all []*box.Process) (seconds float64) {
		for _, p := range all {
			seconds += p.Usage().CPU
		}
		return seconds
	}
	return result.Roles{Client: sum(s.processes), Server: sum(s.inst.Server), Store: sum(s.inst.Disk)}
}

// until waits until a condition holds.
func (s *periodicStage) until(ctx context.Context, most time.Duration, holds func() bool) error {
	for deadline := time.Now().Add(most); !holds(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v", most)
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
