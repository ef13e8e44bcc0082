package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/ddq-io/ddq/bench/faults"
)

// lab builds servers in a directory of its own and lets rounds loose on them.
type lab struct {
	root string // of the source
	dir  string
	ddq  string // as it is

	mu    sync.Mutex
	clean map[string]*control // by round and seed; guarded by mu
}

// control is a round with ddq as it is, played once.
type control struct {
	once sync.Once
	err  error
}

// newLab needs git, and the directory to be the root of the source.
func newLab(ctx context.Context) (*lab, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ddq-mutants-")
	if err != nil {
		return nil, err
	}
	l := &lab{root: root, dir: dir, ddq: filepath.Join(dir, "ddq"), clean: map[string]*control{}}
	if err := l.do(ctx, "go", "build", "-o", l.ddq, "./cmd/ddq"); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lab) close() { _ = os.RemoveAll(l.dir) }

// do runs a command at the root of the source.
func (l *lab) do(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// build makes a server with the patch of a mutant. A patch that does not fit the
// source is an error.
func (l *lab) build(ctx context.Context, m *mutant) (bin string, err error) {
	dir := filepath.Join(l.dir, m.name)
	list := exec.CommandContext(ctx, "git", "apply", "--numstat", "-z", m.path)
	list.Dir = l.root
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("%s is no patch: %w", m.path, err)
	}
	replace := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		file := line[strings.LastIndex(line, "\t")+1:]
		text, err := os.ReadFile(filepath.Join(l.root, file))
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.path, err)
		}
		patched := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(patched), 0o755), os.WriteFile(patched, text, 0o644)); err != nil {
			return "", err
		}
		replace[filepath.Join(l.root, file)] = patched
	}
	apply := exec.CommandContext(ctx, "git", "apply", filepath.Join(l.root, m.path))
	apply.Dir, apply.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+l.dir)
	if out, err := apply.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not fit the source any more: %w\n%s", m.path, err, out)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o644); err != nil {
		return "", err
	}
	bin = filepath.Join(dir, "ddq")
	return bin, l.do(ctx, "go", "build", "-overlay", path, "-o", bin, "./cmd/ddq")
}

// hunt plays the round of a mutant with rising seeds until it is caught, or lived for
// too long.
func (l *lab) hunt(ctx context.Context, m *mutant, limit time.Duration) error {
	bin, err := l.build(ctx, m)
	if err != nil {
		return err
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for seed := uint64(1); limited.Err() == nil && m.caught == ""; seed++ {
		line, err := l.play(limited, m, bin, seed)
		m.took = time.Since(began)
		switch {
		case limited.Err() != nil:
		case err != nil:
			fmt.Fprintf(os.Stderr, "%s, seed %d: the round failed: %v\n", m.name, seed, err)
		case !line.OK:
			if err := l.control(ctx, m, seed); err != nil {
				return err
			}
			m.caught = fmt.Sprintf("%s, seed %d: %s", strings.Join(m.round, " "), seed, line.Summary)
		}
		if line != nil {
			fmt.Fprintf(os.Stderr, "%s, seed %d: %s\n", m.name, seed, line.Summary)
		}
	}
	return ctx.Err()
}

// control plays a round with ddq as it is, which must be clean.
func (l *lab) control(ctx context.Context, m *mutant, seed uint64) error {
	key := fmt.Sprint(m.round, seed)
	l.mu.Lock()
	c := l.clean[key]
	if c == nil {
		c = &control{}
		l.clean[key] = c
	}
	l.mu.Unlock()
	c.once.Do(func() {
		line, err := l.play(ctx, m, l.ddq, seed)
		switch {
		case err != nil:
			c.err = fmt.Errorf("%s, seed %d, with ddq as it is: %w", m.name, seed, err)
		case !line.OK:
			c.err = fmt.Errorf("%s, seed %d, is not clean with ddq as it is: %s; see %s", m.name, seed, line.Summary, line.Ledger)
		}
	})
	return c.err
}

// play plays one round.
func (l *lab) play(ctx context.Context, m *mutant, bin string, seed uint64) (*faults.Line, error) {
	args := append([]string{"bench", "faults", "--server-bin", bin, "--seed", strconv.FormatUint(seed, 10), "-o", "json"}, m.round...)
	cmd := exec.CommandContext(ctx, l.ddq, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var line faults.Line
	if json.Unmarshal(out, &line) == nil && line.Verdict != nil {
		return &line, nil // its exit code says no more
	}
	return nil, errors.Join(err, errors.New(stderr.String()))
}

func tableOf(all []*mutant) string {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"mutant", "promise broken", "caught by", "time"})
	for _, m := range all {
		caught := m.caught
		if caught == "" {
			caught = "MISSED"
		}
		t.AppendRow(table.Row{m.name, m.promise, caught, m.took.Round(time.Second)})
	}
	return t.Render()
}
