package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ddq-io/ddq/bench"
	"github.com/ddq-io/ddq/bench/ledger"
)

// Options say what is broken and how long.
type Options struct {
	Bin   string // the ddq binary
	Store string
	Nodes int
	Seed  uint64
	For   time.Duration // how long tasks are sent in each round
	Rate  float64       // tasks a second
	Work  time.Duration // the most that an ordinary handler takes
	// Ledger is the directory in which each round leaves its ledgers in a directory
	// of its own; empty keeps those of rounds that failed only.
	Ledger string
	Out    io.Writer
	Log    io.Writer
}

// Play plays one round of a fault.
func Play(ctx context.Context, o Options, f Fault) (line Line, err error) {
	line = Line{Schema: 1, Fault: f.Name, Store: o.Store, Nodes: o.Nodes, Seed: o.Seed}
	began := time.Now()
	dir, err := ledgerDir(o, f)
	if err != nil {
		return line, err
	}
	r := &round{
		fault: f, seed: o.Seed, rand: rand.New(rand.NewPCG(o.Seed, draw(o.Seed, f.Name, "schedule"))), dir: dir, log: o.Log,
		setting: setting{
			mix: usualMix(), rate: o.Rate, span: o.For, hold: 2 * time.Second, producers: 2, workers: 2,
			concurrency: 32, work: o.Work, maxRetries: 4, shards: 8,
		},
	}
	if f.tune != nil {
		f.tune(&r.setting)
	}
	switch err := r.run(ctx, o); {
	case errors.Is(err, ErrPrivilege):
		return line, errors.Join(err, os.RemoveAll(dir))
	case err != nil:
		return line, fmt.Errorf("%w (ledgers and logs are in %s)", err, dir)
	}
	h, err := ledger.Read(dir)
	if err != nil {
		return line, err
	}
	line.Verdict = ledger.Check(h, f.rules())
	line.OK, line.Summary = line.Verdict.OK(), line.Verdict.Summary()
	line.Strikes, line.Seconds = r.strikes, time.Since(began).Seconds()
	if o.Ledger == "" && line.OK {
		return line, os.RemoveAll(dir)
	}
	line.Ledger = dir
	return line, nil
}

// ledgerDir makes the directory of a round.
func ledgerDir(o Options, f Fault) (string, error) {
	name := fmt.Sprintf("%s-%s-%d", f.Name, o.Store, o.Seed)
	if o.Ledger == "" {
		return os.MkdirTemp("", "ddq-ledger-"+name+"-")
	}
	if err := os.MkdirAll(o.Ledger, 0o755); err != nil {
		return "", err
	}
	dir := filepath.Join(o.Ledger, name)
	return dir, os.Mkdir(dir, 0o755)
}

// run starts everything, plays, and stops everything.
func (r *round) run(ctx context.Context, o Options) (err error) {
	box, err := bench.NewBox()
	if err != nil {
		return err
	}
	bin, err := exec.LookPath(o.Bin)
	if err != nil {
		return err
	}
	nodes := max(o.Nodes, r.fault.Nodes)
	if o.Store == embedded {
		nodes = 1
	}
	r.stand = &stand{box: box, bin: bin}
	defer func() { err = errors.Join(err, box.Stop(), r.keepLogs(), r.stand.close(), box.Close()) }()
	if r.setting.onDisk != noDisk {
		dir, err := box.Mkdir("disk")
		if err != nil {
			return err
		}
		if r.stand.disk, err = newDisk(box, r.setting.onDisk, dir); err != nil {
			return err
		}
	}
	if r.setting.skewed && o.Store != embedded {
		if r.skew, err = newSkew(box); err != nil {
			return err
		}
	}
	if r.fault.Network {
		if r.net, err = newNetwork(); err != nil {
			return err
		}
	}
	r.stand.relayed = r.setting.relayed
	if r.setting.onlyMade {
		r.stand.options = append(r.stand.options, "--no-auto-create")
	}
	if err := r.stand.raise(ctx, o.Store, nodes); err != nil {
		return err
	}
	return r.play(ctx)
}

// keepLogs copies what the processes printed to where the ledgers are.
func (r *round) keepLogs() error {
	logs, err := filepath.Glob(filepath.Join(r.box.Dir, "*.log"))
	for _, path := range logs {
		text, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(r.dir, filepath.Base(path)), text, 0o644))
	}
	return err
}
