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

	mu       sync.Mutex
	controls map[string]*control // by round and seed, or tests; guarded by mu
}

// control is a round, or tests, with ddq as it is, played once.
type control struct {
	once sync.Once
	err  error
}

// newLab makes the directory.
func newLab(root string) (*lab, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ddq-mutants-")
	if err != nil {
		return nil, err
	}
	return &lab{root: root, dir: dir, ddq: filepath.Join(dir, "ddq"), controls: map[string]*control{}}, nil
}

func (l *lab) close() { _ = os.RemoveAll(l.dir) }

// patch copies the files that a mutant is about and patches the copies. A patch that
// does not fit the source is an error.
func (l *lab) patch(ctx context.Context, m *mutant) error {
	patch, err := filepath.Abs(m.path)
	if err != nil {
		return err
	}
	dir := filepath.Join(l.dir, m.name)
	out, err := command(ctx, l.root, "git", "apply", "--numstat", "-z", patch)
	if err != nil {
		return err
	}
	replace, inGo := map[string]string{}, true
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		file := entry[strings.LastIndex(entry, "\t")+1:] // behind the lines added and deleted
		from, to := filepath.Join(l.root, file), filepath.Join(dir, file)
		text, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644)); err != nil {
			return err
		}
		replace[from], inGo = to, inGo && filepath.Ext(file) == ".go"
	}
	if _, err := command(ctx, dir, "git", "apply", patch); err != nil {
		return fmt.Errorf("%s does not fit the source any more: %w", m.path, err)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if !inGo {
		m.tree = filepath.Join(l.dir, m.name+"-tree")
	}
	m.overlay = filepath.Join(dir, "overlay.json")
	return os.WriteFile(m.overlay, text, 0o644)
}

// plant copies the source to where a mutant is played that needs all of it, and patches it.
func (l *lab) plant(ctx context.Context, m *mutant) error {
	if m.tree == "" {
		return nil
	}
	patch, err := filepath.Abs(m.path)
	if err != nil {
		return err
	}
	files, err := command(ctx, l.root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		if err := copyTo(filepath.Join(m.tree, file), filepath.Join(l.root, file)); err != nil {
			return err
		}
	}
	_, err = command(ctx, m.tree, "git", "apply", patch)
	return err
}

// copyTo copies a file, unless there is none: one may have been deleted.
func copyTo(to, from string) error {
	info, err := os.Stat(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	return errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, info.Mode().Perm()))
}

// build makes a server, with an overlay or as it is.
func (l *lab) build(ctx context.Context, bin, overlay string) error {
	_, err := command(ctx, l.root, "go", "build", "-overlay", overlay, "-o", bin, "./cmd/ddq")
	return err
}

// hunt plays the round of a mutant with rising seeds until it is caught, or has lived
// through enough. One without a round has tests.
func (l *lab) hunt(ctx context.Context, m *mutant, o options) error {
	if len(m.round) == 0 {
		return l.examine(ctx, m, o)
	}
	bin := filepath.Join(l.dir, m.name, "ddq")
	if err := l.build(ctx, bin, m.overlay); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	began := time.Now()
	for seed := uint64(1); seed <= o.seeds && limited.Err() == nil; seed++ {
		line, err := l.play(limited, m, bin, seed)
		m.took = time.Since(began)
		if err != nil {
			tell("%s, seed %d: %v", m.name, seed, err)
			continue
		}
		tell("%s, seed %d: %s", m.name, seed, line.Summary)
		if len(line.Verdict.Offences) > 0 {
			m.caught = fmt.Sprintf("%s on %s, seed %d: %s", line.Fault, line.Store, seed, line.Summary)
			return l.control(ctx, m, seed)
		}
	}
	return ctx.Err()
}

// control plays the round that caught a mutant with ddq as it is: it must be clean.
func (l *lab) control(ctx context.Context, m *mutant, seed uint64) error {
	key := fmt.Sprint(m.round, seed)
	l.mu.Lock()
	c := l.controls[key]
	if c == nil {
		c = &control{}
		l.controls[key] = c
	}
	l.mu.Unlock()
	c.once.Do(func() {
		line, err := l.play(ctx, m, l.ddq, seed)
		if err == nil && !line.OK {
			var text strings.Builder
			_ = line.Verdict.WriteText(&text, 3)
			err = errors.New("it is not clean: " + text.String())
		}
		if err != nil {
			c.err = fmt.Errorf("the round of %s, seed %d, with ddq as it is: %w", m.name, seed, err)
			return
		}
		tell("%s, seed %d, as it is: %s", line.Fault, seed, line.Summary)
	})
	return c.err
}

// play plays one round. It is an error when it came to no verdict, be it because
// the machine was too busy to take a task.
func (l *lab) play(ctx context.Context, m *mutant, bin string, seed uint64) (*faults.Line, error) {
	args := append([]string{"bench", "faults", "--server-bin", bin, "--seed", strconv.FormatUint(seed, 10), "-o", "json"}, m.round...)
	cmd := exec.CommandContext(ctx, l.ddq, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+l.dir) // for the ledgers that are left
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var line faults.Line
	switch {
	case json.Unmarshal(out, &line) != nil:
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	case line.Verdict == nil:
		return nil, errors.New("no verdict: " + line.Skipped + line.Failed)
	}
	if !line.OK && len(line.Verdict.Offences) == 0 {
		return nil, errors.New("no verdict: " + line.Summary)
	}
	return &line, nil // the exit code says no more
}

// command runs a program in a directory and returns its output, which is part of the
// error if it fails.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	// So that git takes the directory for what it is, wherever it is.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return string(out), nil
}

func tell(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

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
