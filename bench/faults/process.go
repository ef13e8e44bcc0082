package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ddq-io/ddq/bench/box"
	"github.com/ddq-io/ddq/bench/faults/party"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
)

// process is a producer, worker or watcher process.
type process struct {
	*box.Process
	orders io.WriteCloser
	sdk    string // of a worker, the language of another SDK; empty: that of Go
}

// startWorker starts a worker, of another SDK where that is not empty.
func (r *round) startWorker(name, sdk string) error {
	c := party.Config{Role: "worker", Addr: stand.AddrOf(nodesOfWorkers(r)), Config: plan.Config{Name: name}}
	if sdk != "" {
		c.Role, c.SDK, c.SDKDir, c.HTTP = party.RoleSDK, sdk, r.sdkDir, stand.HTTPAddrsOf(nodesOfWorkers(r))
	}
	p, err := r.join(c)
	if err != nil {
		return err
	}
	p.sdk = sdk
	r.workers = append(r.workers, p)
	return nil
}

// join starts a party, at all nodes if it names none.
func (r *round) join(c party.Config) (*process, error) {
	c.Dir, c.Addr, c.Seed, c.Mix, c.Hold = r.dir, cmp.Or(c.Addr, r.Addr()), r.seed, r.mix, r.hold
	c.Start, c.For, c.Rate = r.start, r.span, r.rate/float64(max(1, r.setting.producers))
	c.Herd, c.HerdAt = r.herd/max(1, r.setting.producers), r.span
	c.Schedules, c.Midnight, c.MidnightAt = r.setting.schedules, r.midnight, r.midnightAt
	c.Recipients = r.setting.recipients
	c.Workflows, c.Chains = r.setting.workflows, r.setting.workflows/2
	c.Concurrency, c.Work, c.Giving = r.concurrency, r.work, 3*time.Second
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(r.Stand.Dir(), c.Name+".json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return nil, err
	}
	p, in, err := r.Launch(c.Name, c.Role == "worker" || c.Role == party.RoleSDK, "bench", "party", "--party", path)
	return &process{Process: p, orders: in}, err
}

// finish lets parties end: producers by themselves, the others at the end of their orders.
func (r *round) finish(ctx context.Context, parties []*process, role string) error {
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
		case <-time.After(r.span + stand.UpWithin):
			return fmt.Errorf("%s %s does not end:\n%s", role, p.Name, p.Tail())
		}
		if code := p.ExitCode(); code != 0 && !p.Killed() {
			return fmt.Errorf("%s %s exited %d:\n%s", role, p.Name, code, p.Tail())
		}
	}
	return nil
}
