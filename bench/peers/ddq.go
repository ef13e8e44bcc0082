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

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/box"
)

// playDDQ runs the ddq binary's own bench on each store and reads its lines.
func (p plan) playDDQ(ctx context.Context, o bench.Options, workload string, emit func(bench.Line) error) error {
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

func (p plan) playStore(ctx context.Context, o bench.Options, workload, store string, emit func(bench.Line) error) error {
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
		var l bench.Line
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
