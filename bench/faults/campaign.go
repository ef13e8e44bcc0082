package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// errBroken is returned when a promise was broken; what and where was printed.
var errBroken = errors.New("a promise was broken")

// campaign plays many rounds.
type campaign struct {
	Options
	stores      []string
	names       []string // of faults; none means all
	atOnce      int      // rounds at a time
	soak        time.Duration
	report      string // directory
	output      string
	inNamespace bool // this process has a network of its own

	mu     sync.Mutex // guards what is printed, and the rest
	lines  []Line
	broken int
}

// todo is one round to play.
type todo struct {
	fault Fault
	o     Options
}

// run plays every fault on every store it applies to, over and over again with other
// seeds when there is time to soak.
func (c *campaign) run(ctx context.Context) error {
	rounds, err := c.rounds()
	if err != nil {
		return err
	}
	for began := time.Now(); ; c.Seed++ {
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
	if c.broken > 0 {
		return fmt.Errorf("%w in %d rounds", errBroken, c.broken)
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
				return nil // another one failed
			}
			return c.round(ctx, t)
		})
	}
	return group.Wait()
}

// round plays one and prints what came of it.
func (c *campaign) round(ctx context.Context, t todo) error {
	if t.fault.Network && !c.inNamespace {
		err := alone(ctx, t.o, []string{
			"--faults", t.fault.Name, "--store", t.o.Store, "--seed", strconv.FormatUint(t.o.Seed, 10), "--for", t.o.For.String(),
			"--nodes", strconv.Itoa(t.o.Nodes), "--rate", fmt.Sprint(t.o.Rate), "--work", t.o.Work.String(), "--ledger", t.o.Ledger, "-o", c.output,
		})
		switch {
		case errors.Is(err, errBroken):
			c.mu.Lock()
			defer c.mu.Unlock()
			c.broken++
			return nil
		case errors.Is(err, ErrPrivilege) && len(c.names) == 0:
			c.skip(t.fault, err)
			return nil
		}
		return err
	}
	line, err := Play(ctx, t.o, t.fault)
	if errors.Is(err, ErrPrivilege) && len(c.names) == 0 {
		c.skip(t.fault, err)
		return nil
	}
	if err != nil {
		// Not wrapped: ddq would explain it for its own --addr.
		return fmt.Errorf("%s on %s, seed %d: %s", t.fault.Name, t.o.Store, t.o.Seed, err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
	if !line.OK {
		c.broken++
		if err := line.Verdict.WriteText(c.Log, 3); err != nil {
			return err
		}
	}
	return line.write(c.Out, c.output)
}

func (c *campaign) skip(f Fault, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.Log, "%s is skipped: %v\n", f.Name, why)
}

// rounds are the faults that were asked for, on the stores that can have them.
func (c *campaign) rounds() (rounds []todo, err error) {
	for _, name := range c.names {
		if !slices.ContainsFunc(Faults(), func(f Fault) bool { return f.Name == name }) {
			return nil, fmt.Errorf("no fault is called %q, see --list", name)
		}
	}
	for _, f := range Faults() {
		if len(c.names) > 0 && !slices.Contains(c.names, f.Name) {
			continue
		}
		played := false
		for _, store := range c.stores {
			if !f.AppliesTo(store) {
				continue
			}
			o := c.Options
			o.Store = store
			rounds, played = append(rounds, todo{f, o}), true
		}
		if !played && len(c.names) > 0 {
			return nil, fmt.Errorf("fault %s is for --store %s", f.Name, strings.Join(f.Stores, ", "))
		}
	}
	if len(rounds) == 0 {
		return nil, fmt.Errorf("no fault applies to --store %s", strings.Join(c.stores, ","))
	}
	return rounds, nil
}

// complete fills in what depends on where ddq runs.
func (c *campaign) complete() (err error) {
	if c.Bin == "" {
		c.Bin, err = os.Executable()
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
	case c.Work <= 0:
		return errors.New("--work must be above 0")
	}
	return err
}
