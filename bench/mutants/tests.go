package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/bench/binary"
)

const (
	brokenSeed = " breaks promises" // stands in what a simulation says of a seed that does
	failedTest = "--- FAIL: "       // stands before the name of a test that failed
	noTest     = "no tests to run"  // stands behind a package that has no test of the name

	simulated = "simulation, seed " // stands before the seed, in the verdict about a mutant
)

// tests are the arguments of go test that catch a mutant without a round.
func (m *mutant) tests() []string {
	if m.sim > 0 {
		return []string{"-run", "^TestSimulation$", "./actors", "-sim.seeds", strconv.Itoa(m.sim)}
	}
	return m.test
}

// control are the arguments of go test with which ddq as it is must pass. Of a simulation that is the seed that caught the
// mutant: what a simulation finds depends on its seed alone.
func (m *mutant) control() []string {
	if seed, found := strings.CutPrefix(m.caught, simulated); found {
		return []string{"-run", "^TestSimulation$", "./actors", "-sim.first", seed, "-sim.seeds", "1"}
	}
	return m.tests()
}

// verdict is who caught a mutant, from what its tests said; empty: nobody did.
func (m *mutant) verdict(out string) string {
	if m.sim > 0 {
		line, _, found := strings.Cut(out, brokenSeed)
		if !found {
			return ""
		}
		return simulated + line[strings.LastIndex(line, " ")+1:]
	}
	_, failed, found := strings.Cut(out, failedTest)
	if !found {
		return ""
	}
	return "test, " + strings.Fields(failed)[0]
}

// examine runs the tests of a mutant with its patch: the seeds of the simulation, until one
// breaks a promise, or the tests that it names.
func (l *lab) examine(ctx context.Context, m *mutant, o options) error {
	if err := l.plant(ctx, m); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	began := time.Now()
	out, err := l.goTest(limited, m.patched, m.tests())
	m.took = time.Since(began)
	caught := m.verdict(out)
	switch {
	case err != nil && caught != "":
		m.caught = caught
		tell("%s: %s", m.name, m.caught)
		return l.examineAsItIs(ctx, m)
	case err != nil && ctx.Err() == nil && limited.Err() == nil:
		return fmt.Errorf("%s: its tests came to no verdict: %w\n%s", m.name, err, out)
	}
	return ctx.Err()
}

// examineAsItIs runs the tests that caught a mutant with ddq as it is, once: all must pass.
func (l *lab) examineAsItIs(ctx context.Context, m *mutant) error {
	tests := m.control()
	args := strings.Join(tests, " ")
	l.mu.Lock()
	c := l.controls[args]
	if c == nil {
		c = &control{}
		l.controls[args] = c
	}
	l.mu.Unlock()
	c.once.Do(func() {
		if out, err := l.goTest(ctx, patched{}, tests); err != nil {
			c.err = fmt.Errorf("go test %s, with ddq as it is: %w\n%s", args, err, out)
			return
		}
		tell("go test %s, as it is: clean", args)
	})
	return c.err
}

// goTest runs tests, with a patch or as ddq is, and returns what was said. That there is none of the
// name is an error. What the tests build themselves has the patch as well.
func (l *lab) goTest(ctx context.Context, p patched, args []string) (string, error) {
	dir := cmp.Or(p.tree, l.root)
	if len(args) > 2 && args[0] == "-C" { // of another module
		dir, args = filepath.Join(dir, args[1]), args[2:]
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-count", "1"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), binary.Env+"=")
	if p.tree == "" && p.overlay != "" {
		cmd.Env = append(cmd.Env, "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+p.overlay)
	}
	out, err := cmd.CombinedOutput()
	if err == nil && strings.Contains(string(out), noTest) {
		err = errors.New(noTest)
	}
	return string(out), err
}
