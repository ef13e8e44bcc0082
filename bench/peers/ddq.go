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
)

// playDDQ runs the ddq binary's own bench on each store and reads its lines.
func (p plan) playDDQ(ctx context.Context, workload string, emit func(bench.Line) error) error {
	if _, err := exec.LookPath(p.ddqBin); err != nil {
		return fmt.Errorf("ddq is %w: build it with `make build` and name it with --ddq-bin", bench.ErrMissing)
	}
	var failed []error
	for _, store := range p.ddqStores {
		failed = append(failed, p.playStore(ctx, workload, store, emit))
	}
	return errors.Join(failed...)
}

func (p plan) playStore(ctx context.Context, workload, store string, emit func(bench.Line) error) error {
	o := p.options
	cmd := exec.CommandContext(ctx, p.ddqBin, "bench", workload, "--store", store, "-o", "json",
		"--tasks", strconv.Itoa(o.Tasks), "--for", o.For.String(), "--seed", strconv.FormatInt(o.Seed, 10),
		"--producers", strconv.Itoa(o.Producers), "--concurrency", strconv.Itoa(o.Concurrency),
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
