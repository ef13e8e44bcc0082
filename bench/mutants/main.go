// Command mutants proves that the rounds of faults would notice: it breaks ddq on
// purpose, in the source, and plays the round that must find it.
//
// A mutant is a patch in this directory. What stands above its first diff says what it
// breaks, and how it is caught:
//
//	promise: the one that it breaks
//	round:   flags of ddq bench faults, without the seed
//	sim:     in place of a round: how many seeds of the simulation
//	test:    in place of both, where neither can show it: a package and flags of go test
//
// For each one a server is built with the patch, and the round is played with rising
// seeds until a promise is broken; the same round with ddq as it is must be clean. So
// must the seed of a simulation or the tests be that caught it, which are played with the patch in the
// same way. The tree stays as it is: go takes the patched files from elsewhere, and tests of a mutant in
// another language are played in a copy of it. Tests of another module begin with -C and its directory.
//
// It is to be run at the root of the source, and needs git.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	limit  time.Duration
	seeds  uint64
	atOnce int
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("mutants [name ...]", flag.ExitOnError)
	flags.DurationVar(&o.limit, "limit", 10*time.Minute, "a mutant that lives longer was missed")
	flags.Uint64Var(&o.seeds, "seeds", 10, "so was one that lives through so many rounds")
	flags.IntVar(&o.atOnce, "at-once", 2, "mutants at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := load("bench/mutants", flags.Args())
	if err != nil {
		return err
	}
	l, err := newLab(".")
	if err != nil {
		return err
	}
	defer l.close()
	for _, m := range all { // first of all, as it takes no time
		if err := l.patch(ctx, m); err != nil {
			return err
		}
	}
	if err := l.build(ctx, l.ddq, ""); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, o.atOnce))
	for _, m := range all {
		group.Go(func() error {
			m.unclear = l.hunt(ctx, m, o) // which says nothing of the others
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Println(tableOf(all))
	missed := slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool { return m.caught != "" })
	fmt.Printf("%d of %d caught\n", len(all)-len(missed), len(all))
	for _, m := range all {
		err = errors.Join(err, m.unclear)
	}
	if len(missed) > 0 {
		err = errors.Join(fmt.Errorf("%d missed", len(missed)), err)
	}
	return err
}

// mutant is one patch and what became of it.
type mutant struct {
	name, path string
	promise    string
	round      []string // flags; a mutant has a round, or sim, or test
	sim        int      // seeds of the simulation
	test       []string // arguments of go test

	patched
	caught  string        // by which round, seed and rule; empty: missed
	took    time.Duration // until then, without building
	unclear error         // why there is no verdict, or none that counts
}

// patched is where a mutant's source is.
type patched struct {
	overlay string // says which files of the source are patched, and where the patched ones are
	tree    string // all of the source, where go does not read what is patched; empty: the overlay is enough
}

// load reads the patches of a directory, or some of them.
func load(dir string, names []string) (all []*mutant, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		m := &mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), path: path}
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		if err := m.read(); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, m)
	}
	if len(all) == 0 || len(names) > len(all) {
		return nil, fmt.Errorf("%s has %d of the %d mutants that were named", dir, len(all), len(names))
	}
	return all, nil
}

// read reads what stands above the first diff.
func (m *mutant) read() error {
	text, err := os.ReadFile(m.path)
	if err != nil {
		return err
	}
	head, _, _ := strings.Cut(string(text), "diff --git ")
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "promise":
			m.promise = strings.TrimSpace(value)
		case "round":
			m.round = strings.Fields(value)
		case "sim":
			if m.sim, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		case "test":
			m.test = strings.Fields(value)
		}
	}
	if m.promise == "" || m.catchers() != 1 {
		return errors.New("it does not say which promise it breaks, and in which round, in how many seeds or in which tests")
	}
	return nil
}

// catchers is how many ways of catching it a mutant names: it is to be one.
func (m *mutant) catchers() (n int) {
	for _, named := range []bool{len(m.round) > 0, m.sim > 0, len(m.test) > 0} {
		if named {
			n++
		}
	}
	return n
}
