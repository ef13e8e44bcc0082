package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/ledger"
)

const (
	// lead is the time between the start of the parties and that of the plan.
	lead = 500 * time.Millisecond
	// calm is how long everything is left alone at first and at last.
	calm = 1500 * time.Millisecond
	// stalled is how long nothing may become of what is left before it is taken to
	// be stuck.
	stalled = time.Minute
)

// setting is what a round is played with.
type setting struct {
	mix         Mix
	rate        float64
	span        time.Duration // how long tasks are sent
	hold        time.Duration
	producers   int
	workers     int
	concurrency int
	work        time.Duration // the most that a handler takes
	herd        int
	maxRetries  int
	shards      int
	onDisk      string // of the store, see newDisk
	skewed      bool   // the store has a clock that can be set
	relayed     bool   // the nodes reach the store through a relay
	onlyMade    bool   // an enqueue makes no topic: it would have no policy
}

// round is one fault on a system of its own.
type round struct {
	*stand
	setting
	fault  Fault
	seed   uint64
	rand   *rand.Rand // the schedule's
	dir    string     // of the ledgers
	log    io.Writer
	ledger *ledger.Writer // of who breaks things

	start     time.Time // of the plan
	producers []*party
	workers   []*party
	watcher   *party
	strikes   int
	shift     shift
}

// party is a producer, worker or watcher process.
type party struct {
	*bench.Process
	orders io.WriteCloser
}

// play runs the round; the ledgers are complete afterwards.
func (r *round) play(ctx context.Context) (err error) {
	if r.ledger, err = ledger.Create(r.dir, "nemesis"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.ledger.Close()) }()
	if r.skewed {
		ctx, stop := context.WithCancel(ctx)
		var reader sync.WaitGroup
		reader.Go(func() { r.readClock(ctx) })
		defer reader.Wait()
		defer stop()
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.trouble(ctx); err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	if err := r.letBacklogGo(ctx); err != nil {
		return err
	}
	if err := r.finish(ctx, r.workers, "worker"); err != nil {
		return err
	}
	if err := r.audit(ctx); err != nil {
		return err
	}
	return r.finishWatch(ctx)
}

// trouble breaks things while topics are changed, until all producers are done.
func (r *round) trouble(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.operate(ctx) })
	group.Go(func() error { return r.replaceWatcher(ctx) })
	group.Go(func() error {
		if err := r.strikeOn(ctx); err != nil {
			return fmt.Errorf("%s: %w", r.fault.Name, err)
		}
		return r.finish(ctx, r.producers, "producer")
	})
	return group.Wait()
}

// prepare makes the topics and starts the parties.
func (r *round) prepare(ctx context.Context) error {
	if err := r.makeTopics(ctx); err != nil {
		return err
	}
	r.start = time.Now().Add(lead)
	if err := r.startWatcher("watcher-1", ""); err != nil {
		return err
	}
	for i := range r.setting.workers {
		if err := r.startWorker(fmt.Sprint("w", i)); err != nil {
			return err
		}
	}
	for i := range r.setting.producers {
		p, err := r.join(partyConfig{Role: "producer", Name: fmt.Sprint("p", i)})
		if err != nil {
			return err
		}
		r.producers = append(r.producers, p)
	}
	return nil
}

func (r *round) startWorker(name string) error {
	p, err := r.join(partyConfig{Role: "worker", Name: name})
	r.workers = append(r.workers, p)
	return err
}

// join starts a party.
func (r *round) join(c partyConfig) (*party, error) {
	c.Dir, c.Addr, c.Seed, c.Mix, c.Hold = r.dir, r.addr(), r.seed, r.mix, r.hold
	c.Start, c.For, c.Rate = r.start, r.span, r.rate/float64(max(1, r.setting.producers))
	c.Herd, c.HerdAt = r.herd/max(1, r.setting.producers), r.span
	c.Concurrency, c.Work, c.Giving = r.concurrency, r.work, 3*time.Second
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(r.box.Dir, c.Name+".json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(r.bin, "bench", "party", "--party", path)
	if r.net != nil && c.Role == "worker" {
		if _, err := r.net.host(c.Name); err != nil {
			return nil, err
		}
		cmd = r.net.in(c.Name, cmd.Args...)
	}
	cmd.Env, cmd.Dir = bench.PlainEnv(), r.box.Dir
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p, err := r.box.Start(c.Name, cmd)
	return &party{p, in}, err
}

// strikeOn lets the fault happen, again and again, between calm and calm.
func (r *round) strikeOn(ctx context.Context) error {
	if err := r.sleep(ctx, time.Until(r.start)+calm); err != nil {
		return err
	}
	for first := true; first || !r.fault.once && time.Since(r.start) < r.span-2*calm; first = false {
		if err := r.fault.strike(ctx, r); err != nil {
			return err
		}
		if err := r.pause(ctx, calm/2, calm*2); err != nil {
			return err
		}
	}
	return nil
}

// broken writes down when something is broken and when it is whole again.
func (r *round) broken(ctx context.Context, what string, do func() error) error {
	r.strikes++
	r.logf("%s %+.1fs: %s", r.fault.Name, time.Since(r.start).Seconds(), what)
	r.ledger.Append(ledger.Event{Kind: ledger.Fault, Fault: r.fault.Name, Reason: what})
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	r.ledger.Append(ledger.Event{Kind: ledger.Healed, Fault: r.fault.Name})
	return ctx.Err()
}

func (r *round) logf(format string, args ...any) {
	fmt.Fprintf(r.log, "  "+format+"\n", args...)
}

// anyNode picks a node.
func (r *round) anyNode() *node { return r.nodes[r.rand.IntN(len(r.nodes))] }

// pause lets between low and high pass.
func (r *round) pause(ctx context.Context, low, high time.Duration) error {
	return r.sleep(ctx, low+time.Duration(r.rand.Int64N(int64(high-low)+1)))
}

func (r *round) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish lets parties end: producers by themselves, the others at the end of their orders.
func (r *round) finish(ctx context.Context, parties []*party, role string) error {
	for _, p := range parties {
		if role != "producer" {
			if err := p.orders.Close(); err != nil && p.Running() {
				return err
			}
		}
		select {
		case <-p.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(r.span + upWithin):
			return fmt.Errorf("%s %s does not end:\n%s", role, p.Name, p.Tail())
		}
		if code := p.ExitCode(); code != 0 && !p.Killed() {
			return fmt.Errorf("%s %s exited %d:\n%s", role, p.Name, code, p.Tail())
		}
	}
	return nil
}
