package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/lateness"
	"github.com/ddq-io/ddq/bench/result"
)

// playDDQ runs the ddq binary's own bench on each store and reads its lines.
func (p plan) playDDQ(ctx context.Context, o bench.Options, workload string, emit func(result.Line) error) error {
	if _, err := exec.LookPath(p.ddqBin); err != nil {
		return fmt.Errorf("ddq is %w: build it with `make build` and name it with --ddq-bin", box.ErrMissing)
	}
	var failed []error
	for _, store := range p.ddqStores {
		failed = append(failed, p.playStore(ctx, o, workload, store, emit))
	}
	return errors.Join(failed...)
}

// ddqSettings is what is set of ddq's workers.
func ddqSettings(o bench.Options) string {
	if o.InFlight == 0 {
		return fmt.Sprintf("server as shipped; %d worker, in flight as shipped", o.Workers)
	}
	return fmt.Sprintf("server as shipped; %d workers of at most %d tasks in flight", o.Workers, o.InFlight)
}

// playSchedulesOfDDQ runs the part of ddq's own bench in which a server is killed, on each store.
func (p *plan) playSchedulesOfDDQ(ctx context.Context, emit func(result.Line) error) error {
	if _, err := exec.LookPath(p.ddqBin); err != nil {
		return fmt.Errorf("ddq is %w: build it with `make build` and name it with --ddq-bin", box.ErrMissing)
	}
	var failed []error
	for _, store := range p.ddqStores {
		failed = append(failed, p.schedulesOn(ctx, store, emit))
	}
	return errors.Join(failed...)
}

// killedPart is what `ddq bench schedules` says of it.
type killedPart struct {
	Version   string               `json:"version"`
	Schedules int                  `json:"schedules"`
	Runs      int                  `json:"runs"`
	LateMS    lateness.Percentiles `json:"late_ms"`
	Early     int                  `json:"early"`
	Doubled   int                  `json:"doubled"`
	CPU       result.Roles         `json:"cpu_s"`
	Machine   string               `json:"machine"`
}

func (p *plan) schedulesOn(ctx context.Context, store string, emit func(result.Line) error) error {
	cmd := exec.CommandContext(ctx, p.ddqBin, "bench", "schedules", "--parts", "killed", "--store", store,
		"--rate", strconv.Itoa(p.schedules), "--for", p.schedulesFor.String())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it has things to stop and remove
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, p.options.Log
	runErr := cmd.Run() // a broken promise fails it, and its line counts all the same
	var k killedPart
	if err := json.Unmarshal(out.Bytes(), &k); err != nil {
		return errors.Join(fmt.Errorf("ddq bench schedules: %w", err), runErr)
	}
	settings := "as shipped but for a visibility timeout of 1s; two servers, of which one is killed in the middle, and two workers"
	if store == "embedded" {
		settings = "as shipped but for a visibility timeout of 1s; one server, which is killed in the middle and started again, and two workers"
	}
	err := emit(result.Line{
		Schema: 1, System: "ddq", Version: k.Version, Workload: result.WorkloadSchedules, Store: store, Settings: settings,
		Seed: p.options.Seed, Concurrency: 64, Rate: p.schedules, Tasks: k.Schedules * int(p.schedulesFor/time.Second), Seconds: p.schedulesFor.Seconds(),
		LateMS: k.LateMS, Early: k.Early, Lost: k.Schedules*int(p.schedulesFor/time.Second) - k.Runs, Duplicate: k.Doubled, CPU: k.CPU, Machine: k.Machine,
	})
	if runErr != nil {
		return errors.Join(err, fmt.Errorf("ddq bench schedules --store %s: %w", store, runErr))
	}
	return err
}

func (p plan) playStore(ctx context.Context, o bench.Options, workload, store string, emit func(result.Line) error) error {
	cmd := exec.CommandContext(ctx, p.ddqBin, "bench", workload, "--store", store, "-o", "json",
		"--tasks", strconv.Itoa(o.Tasks), "--for", o.For.String(), "--seed", strconv.FormatInt(o.Seed, 10),
		"--producers", strconv.Itoa(o.Producers), "--concurrency", strconv.Itoa(o.Concurrency),
		"--workers", strconv.Itoa(o.Workers), "--in-flight", strconv.Itoa(o.InFlight),
		"--payload", strconv.Itoa(o.Payload), "--backlog", strconv.Itoa(o.Backlog), "--mode", o.Mode)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it has things to stop and remove
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, o.Log
	runErr := cmd.Run() // a broken promise fails it, and its lines count all the same
	for text := range strings.Lines(out.String()) {
		var l result.Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return fmt.Errorf("ddq bench %s: %w", workload, err)
		}
		if err := emit(l); err != nil {
			return err
		}
	}
	if runErr != nil {
		return fmt.Errorf("ddq bench %s --store %s: %w", workload, store, runErr)
	}
	return nil
}
