package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/bench/faults/party"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
)

const (
	// lead is the time between the start of the parties and that of the plan.
	lead = 500 * time.Millisecond
	// calm is how long everything is left alone at first and at last.
	calm = 1500 * time.Millisecond
)

// play runs the round; the ledgers are complete afterwards.
func (r *round) play(ctx context.Context) (err error) {
	if r.ledger, err = ledger.Create(r.dir, "nemesis"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.ledger.Close()) }()
	if r.system.Skewed {
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
	if err := r.finishSchedules(ctx); err != nil {
		return err
	}
	if err := r.finishAudience(ctx); err != nil {
		return err
	}
	if err := r.finishWorkflows(ctx); err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	if err := (backlog{r}).letGo(ctx); err != nil {
		return err
	}
	if err := r.finish(ctx, r.workers, "worker"); err != nil {
		return err
	}
	if err := (&auditor{r.Nodes[0], r.ledger}).audit(ctx); err != nil {
		return err
	}
	return r.finishWatch(ctx)
}

// trouble breaks things while topics are changed, until all producers are done.
func (r *round) trouble(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return operator{r}.operate(ctx) })
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
	bounded, err := operator{r}.bound(ctx)
	if err != nil {
		return err
	}
	if err := (operator{r}).makeTopics(ctx); err != nil {
		return err
	}
	if err := (backlog{r}).store(ctx); err != nil {
		return err
	}
	if err := r.sleep(ctx, time.Until(bounded)); err != nil {
		return err
	}
	r.start = time.Now().Add(lead)
	if err := r.startWatcher("watcher-1", ""); err != nil {
		return err
	}
	if err := r.startSchedules(); err != nil {
		return err
	}
	if err := r.startAudience(); err != nil {
		return err
	}
	if err := r.startWorkflows(); err != nil {
		return err
	}
	for i := range r.setting.workers {
		if err := r.startWorker(fmt.Sprint("w", i), ""); err != nil {
			return err
		}
	}
	for _, sdk := range r.sdks {
		if err := r.startWorker("w-"+sdk, sdk); err != nil {
			return err
		}
	}
	return startProducers(r)
}

// startProducers starts a process for each, or one for all, which share a client then.
func startProducers(r *round) error {
	var names []string
	for i := range r.setting.producers {
		names = append(names, fmt.Sprint("p", i))
	}
	each := slices.Collect(slices.Chunk(names, 1))
	if r.oneClient {
		each = [][]string{names}
	}
	for _, names := range each {
		p, err := r.join(party.Config{Role: "producer", Config: plan.Config{Name: names[0]}, Beside: names[1:]})
		if err != nil {
			return err
		}
		r.producers = append(r.producers, p)
	}
	if r.outbox == "" {
		return nil
	}
	p, err := r.join(party.Config{Role: party.RoleOutbox, Config: plan.Config{Name: "outbox"}, Outbox: r.outbox})
	r.producers = append(r.producers, p)
	return err
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
