package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/bench/faults/party"
	"github.com/ddq-io/ddq/bench/faults/stand"
)

// errBroken is returned when a promise was broken; what and where was printed.
var errBroken = errors.New("a promise was broken")

// campaign plays many rounds.
type campaign struct {
	Options
	stores      []string
	names       []string // of faults; none means all
	eachOnce    bool     // each fault on one store only, and those that cannot be had here on none
	atOnce      int      // rounds at a time
	soak        time.Duration
	report      string // directory
	output      string
	inNamespace bool // this process has a network of its own

	mu      sync.Mutex // guards what is printed, and the rest
	lines   []Line
	skipped int
	broken  int
	failed  int
}

// todo is one round to play.
type todo struct {
	fault Fault
	o     Options
}

// run plays every fault on every store it applies to, over and over again with other
// seeds when there is time to soak.
func (c *campaign) run(ctx context.Context) error {
	for began := time.Now(); ; c.Seed++ {
		rounds, err := c.rounds()
		if err != nil {
			return err
		}
		if err := c.pass(ctx, rounds); err != nil {
			return err
		}
		if time.Since(began) >= c.soak {
			break
		}
	}
	if c.report != "" {
		if err := writeReport(c.report, c.lines); err != nil {
			return err
		}
	}
	return c.outcome()
}

// outcome is what came of all rounds.
func (c *campaign) outcome() error {
	if c.skipped > 0 {
		fmt.Fprintf(c.Log, "%d of %d rounds could not be played here\n", c.skipped, len(c.lines))
	}
	switch {
	case c.broken > 0:
		return fmt.Errorf("%w in %d of %d rounds, and %d came to no verdict", errBroken, c.broken, len(c.lines), c.failed)
	case c.failed > 0:
		return fmt.Errorf("%d of %d rounds came to no verdict", c.failed, len(c.lines))
	}
	return nil
}

// pass plays all rounds once.
func (c *campaign) pass(ctx context.Context, rounds []todo) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, c.atOnce))
	for _, t := range rounds {
		t.o.Seed = c.Seed
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.round(ctx, t)
		})
	}
	return group.Wait()
}

// round plays one and prints what came of it. One that comes to no verdict does not
// keep the others from being played.
func (c *campaign) round(ctx context.Context, t todo) error {
	apart := t.fault.Network && !c.inNamespace
	var line Line
	var err error
	if apart {
		line, err = alone(ctx, t)
	} else {
		line, err = Play(ctx, t.o, t.fault)
	}
	line.Schema, line.Fault, line.Store, line.Seed = 1, t.fault.Name, t.o.Store, t.o.Seed
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, stand.ErrPrivilege):
		line.Summary, line.Skipped = "skipped", err.Error()
	case err != nil:
		line.Summary, line.Failed = "failed", err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	switch {
	case line.Skipped != "" && (len(c.names) == 0 || c.eachOnce):
		c.skipped++
	case line.Verdict == nil:
		c.failed++
	case !line.OK:
		c.broken++
		if apart { // it has said so itself
			break
		}
		if err := line.Verdict.WriteText(c.Log, 3); err != nil {
			return err
		}
	}
	return line.write(c.Out, c.output)
}

// rounds are the faults that were asked for, on the stores that can have them.
func (c *campaign) rounds() (rounds []todo, err error) {
	for _, name := range c.names {
		if !slices.ContainsFunc(Faults(), func(f Fault) bool { return f.Name == name }) {
			return nil, fmt.Errorf("no fault is called %q, see --list", name)
		}
	}
	for i, f := range Faults() {
		if len(c.names) > 0 && !slices.Contains(c.names, f.Name) {
			continue
		}
		stores := c.storesOf(f, uint64(i))
		for _, store := range stores {
			o := c.Options
			o.Store = store
			rounds = append(rounds, todo{f, o})
		}
		if len(stores) == 0 && len(c.names) > 0 {
			return nil, fmt.Errorf("fault %s is for --store %s", f.Name, strings.Join(f.Stores, ", "))
		}
	}
	slices.SortStableFunc(rounds, func(a, b todo) int { return b.fault.turn() - a.fault.turn() })
	if len(rounds) == 0 {
		return nil, fmt.Errorf("no fault applies to --store %s", strings.Join(c.stores, ","))
	}
	return rounds, nil
}

// storesOf are those that a fault is played on. turn takes neighbouring faults to
// different ones, where it is to be one of them only.
func (c *campaign) storesOf(f Fault, turn uint64) (stores []string) {
	for _, store := range c.stores {
		if f.AppliesTo(store) {
			stores = append(stores, store)
		}
	}
	if c.eachOnce && len(stores) > 0 {
		i := (c.Seed + turn) % uint64(len(stores))
		stores = stores[i : i+1]
	}
	return stores
}

// complete fills in what depends on where ddq runs.
func (c *campaign) complete() (err error) {
	if c.Bin == "" {
		c.Bin, err = os.Executable()
	}
	if c.Ledger != "" && err == nil {
		c.Ledger, err = filepath.Abs(c.Ledger) // parties have directories of their own
	}
	if err == nil {
		err = c.findSDKs()
	}
	for _, path := range []*string{&c.Outbox, &c.First} {
		if *path != "" && err == nil {
			*path, err = exec.LookPath(*path)
		}
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	switch {
	case c.output != "table" && c.output != "json":
		return fmt.Errorf("--output is table or json, not %q", c.output)
	case c.Nodes < 1 || c.Nodes > 20:
		return errors.New("--nodes must be between 1 and 20")
	case c.For < 5*time.Second:
		return errors.New("--for must be 5s or more, or there is no time to break anything")
	case c.Rate <= 0 || c.Rate > 20_000:
		return errors.New("--rate must be above 0, and 20000 at most")
	case c.Crowd < 1 || c.Crowd > 100_000:
		return errors.New("--crowd must be between 1 and 100000")
	case c.Recipients < 1 || c.Recipients > 100_000:
		return errors.New("--recipients must be between 1 and 100000")
	case c.Workflows < 0 || c.Workflows > 10_000:
		return errors.New("--workflows must be between 0 and 10000")
	case c.Work <= 0:
		return errors.New("--work must be above 0")
	}
	return err
}

// findSDKs looks whether the SDKs that rounds are to have are there.
func (c *campaign) findSDKs() (err error) {
	for _, language := range c.SDKs {
		if language != party.Python && language != party.TypeScript {
			return fmt.Errorf("--sdks has %s and %s, and no %q", party.Python, party.TypeScript, language)
		}
		if _, err := os.Stat(filepath.Join(c.SDKDir, language)); err != nil {
			return fmt.Errorf("the SDK of %s: %w (tools/sdks-unpacked.sh puts it there)", language, err)
		}
	}
	c.SDKDir, err = filepath.Abs(c.SDKDir)
	return err
}
