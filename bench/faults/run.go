package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
	"github.com/ddq-io/ddq/bench/ledger/checker"
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
	Crowd int           // schedules that have one occurrence at the same second, in rounds of midnight
	// Workflows is how many a round has, of all shapes; four times as many where they are what it is about.
	Workflows int
	// UndoneWorkflows plays workflows also where the fault may undo what was answered. What such
	// rounds tell of them is not all explained yet.
	UndoneWorkflows bool
	// Reshard gives the topics of schedules, audiences and workflows other shards in the middle.
	Reshard    bool
	Recipients int // of the audience
	// SDKs are the languages of other SDKs, of each of which a round has a worker, and SDKDir where
	// they are.
	SDKs   []string
	SDKDir string
	// First is the ddq that each node begins with: it is upgraded to Bin when it is restarted. Empty: Bin.
	First string
	// Outbox is ddq-outbox, which hands on what a producer commits to a PostgreSQL; empty: there is none.
	Outbox string
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
		fault: f, seed: o.Seed, rand: rand.New(rand.NewPCG(o.Seed, plan.Draw(o.Seed, f.Name, "schedule"))), dir: dir, log: o.Log,
		setting: setting{
			system: stand.Config{Store: o.Store, Nodes: max(o.Nodes, f.Nodes), Network: f.Network, First: o.First},
			mix:    plan.UsualMix(), rate: o.Rate, span: o.For, hold: 2 * time.Second, producers: 2, workers: 2, sdks: o.SDKs, sdkDir: o.SDKDir, outbox: o.Outbox,
			concurrency: 32, work: o.Work, maxRetries: 4, shards: 8,
			schedules: 60, recipients: o.Recipients, workflows: o.Workflows, crowd: o.Crowd, reshard: o.Reshard,
		},
	}
	if len(f.Allow) > 0 && !o.UndoneWorkflows {
		r.setting.workflows = 0
	}
	if f.tune != nil {
		f.tune(&r.setting)
	}
	// A herd would wait for nothing but the quota, and for minutes; and where tasks are to be served nothing else may be a
	// reason to wait.
	if plan.Draw(o.Seed, f.Name, "quota")%2 == 0 && r.setting.herd == 0 && !f.Serves {
		r.setting.together = together(o.Rate)
	}
	r.oneClient = plan.Draw(o.Seed, f.Name, "client")%2 == 0
	switch err := r.run(ctx, o.Bin); {
	case errors.Is(err, stand.ErrPrivilege):
		return line, errors.Join(err, os.RemoveAll(dir))
	case err != nil:
		return line, fmt.Errorf("%w (ledgers and logs are in %s)", err, dir)
	}
	h, err := checker.Read(dir)
	if err != nil {
		return line, err
	}
	line.Verdict = checker.Check(h, f.rules())
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
func (r *round) run(ctx context.Context, ddq string) (err error) {
	if r.Stand, err = stand.New(ddq); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Stand.Stop(), r.keepLogs(), r.Stand.Close()) }()
	if err := r.Raise(ctx, r.system); err != nil {
		return err
	}
	return r.play(ctx)
}

// keepLogs copies what the processes printed to where the ledgers are.
func (r *round) keepLogs() error {
	logs, err := filepath.Glob(filepath.Join(r.Stand.Dir(), "*.log"))
	for _, path := range logs {
		text, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(r.dir, filepath.Base(path)), text, 0o644))
	}
	return err
}
