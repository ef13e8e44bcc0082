package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// inMemory is how long the backlog may take to be in the memory of its node.
const inMemory = 3 * time.Second

// lane is a part of the backlog.
type lane struct {
	n        int
	priority int
	fairness string
	weight   int // 0 without a fairness key
}

// backlog is the other way round than it has to go.
func backlog() []lane {
	return []lane{{60, 0, "", 0}, {120, 5, "bulk", 1}, {40, 5, "gold", 4}, {15, 5, "tiny", 1}, {60, 9, "", 0}}
}

// storeBacklog enqueues the tasks of the backlog.
func (r *round) storeBacklog(ctx context.Context) error {
	var tasks []client.Task
	var calls []ledger.Event
	for _, l := range backlog() {
		for range l.n {
			t := client.Task{
				Topic: plan.Laned, ID: fmt.Sprint("lane-", len(tasks)), Payload: []byte(l.fairness), Priority: l.priority, FairnessKey: l.fairness, FairnessWeight: l.weight,
			}
			tasks = append(tasks, t)
			calls = append(calls, ledger.Event{
				Kind: ledger.Call, Op: ledger.Enqueue, Call: r.ledger.NextCall(), Topic: plan.Laned, Task: t.ID, Sum: tap.Sum(t.Payload),
				Priority: l.priority, Lane: l.fairness, Weight: l.weight,
			})
		}
	}
	r.ledger.Append(calls...)
	var results []client.Result
	err := r.Nodes[0].Ask(func(c *client.Client) (err error) {
		results, err = c.EnqueueBatch(ctx, tasks)
		return err
	})
	if err != nil {
		return err
	}
	answers := make([]ledger.Event, len(calls))
	for i, call := range calls {
		err = errors.Join(err, results[i].Err)
		answers[i] = ledger.Event{
			Kind: ledger.Answer, Op: call.Op, Call: call.Call, Topic: plan.Laned, Task: call.Task, Result: ledger.OK, Due: tap.Millis(results[i].Due),
		}
	}
	r.ledger.Append(answers...)
	return err
}

// letBacklogGo lets the backlog be delivered, and writes down whether it was in the memory
// of one node all the while.
func (r *round) letBacklogGo(ctx context.Context) error {
	return r.Nodes[0].Ask(func(c *client.Client) error {
		owner, epoch, err := r.awaitBacklog(ctx, c)
		if err != nil {
			return err
		}
		err = r.changeTopic(ledger.Event{Op: ledger.Resume, Topic: plan.Laned}, func() (client.Topic, error) { return c.ResumeTopic(ctx, plan.Laned) })
		if err != nil {
			return err
		}
		if err := r.awaitGone(ctx, c); err != nil {
			return err
		}
		shard, err := lanedShard(ctx, c)
		switch {
		case err != nil:
			return err
		case owner == "" || shard.Owner != owner || shard.Epoch != epoch:
			r.logf("the backlog of %s was not at one node", plan.Laned)
			return nil
		}
		// Twice that many, as what comes back from a worker is on its way, too.
		r.ledger.Append(ledger.Event{Kind: ledger.Ordered, Topic: plan.Laned, Cap: 2 * r.setting.workers * plan.LanedInFlight})
		return nil
	})
}

// awaitBacklog waits until the owner of the backlog says that it has all of it in memory;
// an empty owner says that nobody did for long.
func (r *round) awaitBacklog(ctx context.Context, c *client.Client) (owner string, epoch int64, err error) {
	for end := time.Now().Add(inMemory); time.Now().Before(end); {
		shard, err := lanedShard(ctx, c)
		if err != nil {
			return "", 0, err
		}
		i := slices.IndexFunc(r.Nodes, func(nd *stand.Node) bool { return nd.Name == shard.Owner })
		if i >= 0 {
			ready, err := r.Nodes[i].ReadyTasks(ctx, plan.Laned)
			if err == nil && ready >= shard.Depth.Ready+shard.Depth.Scheduled {
				return shard.Owner, shard.Epoch, nil
			}
		}
		if err := r.sleep(ctx, 50*time.Millisecond); err != nil {
			return "", 0, err
		}
	}
	return "", 0, nil
}

// lanedShard is the one shard of the backlog.
func lanedShard(ctx context.Context, c *client.Client) (client.Shard, error) {
	for shard, err := range c.Shards(ctx, plan.Laned) {
		return shard, err
	}
	return client.Shard{}, errors.New("no shard")
}

// awaitGone waits until the backlog is, or nothing happens any more.
func (r *round) awaitGone(ctx context.Context, c *client.Client) error {
	return r.awaitNone(ctx, "tasks are left of the backlog", 50*time.Millisecond, func() (int64, error) {
		status, err := c.DescribeTopic(ctx, plan.Laned)
		return unfinished(&status), err
	})
}
