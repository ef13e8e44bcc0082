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

// backlog is the tasks of lanes that one node has in its memory before it may hand any out.
type backlog struct{ *round }

// lanes are the other way round than they have to go.
func lanes() []lane {
	return []lane{{60, 0, "", 0}, {120, 5, "bulk", 1}, {40, 5, "gold", 4}, {15, 5, "tiny", 1}, {60, 9, "", 0}}
}

// store enqueues the tasks of the backlog.
func (b backlog) store(ctx context.Context) error {
	var tasks []client.Task
	var calls []ledger.Event
	for _, l := range lanes() {
		for range l.n {
			t := client.Task{
				Topic: plan.Laned, ID: fmt.Sprint("lane-", len(tasks)), Payload: []byte(l.fairness), Priority: l.priority, FairnessKey: l.fairness, FairnessWeight: l.weight,
			}
			tasks = append(tasks, t)
			calls = append(calls, ledger.Event{
				Kind: ledger.Call, Op: ledger.Enqueue, Call: b.ledger.NextCall(), Topic: plan.Laned, Task: t.ID, Sum: tap.Sum(t.Payload),
				Priority: l.priority, Lane: l.fairness, Weight: l.weight,
			})
		}
	}
	b.ledger.Append(calls...)
	var results []client.Result
	err := b.Nodes[0].Ask(func(c *client.Client) (err error) {
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
	b.ledger.Append(answers...)
	return err
}

// letGo lets the backlog be delivered, and writes down whether it was in the memory
// of one node all the while.
func (b backlog) letGo(ctx context.Context) error {
	return b.Nodes[0].Ask(func(c *client.Client) error {
		owner, epoch, err := b.awaitInMemory(ctx, c)
		if err != nil {
			return err
		}
		err = b.changeTopic(ledger.Event{Op: ledger.Resume, Topic: plan.Laned}, func() (client.Topic, error) { return c.ResumeTopic(ctx, plan.Laned) })
		if err != nil {
			return err
		}
		if err := b.awaitGone(ctx, c); err != nil {
			return err
		}
		shard, err := lanedShard(ctx, c)
		switch {
		case err != nil:
			return err
		case owner == "" || shard.Owner != owner || shard.Epoch != epoch:
			b.logf("the backlog of %s was not at one node", plan.Laned)
			return nil
		}
		// Twice that many, as what comes back from a worker is on its way, too.
		b.ledger.Append(ledger.Event{Kind: ledger.Ordered, Topic: plan.Laned, Cap: 2 * b.setting.workers * plan.LanedInFlight})
		return nil
	})
}

// awaitInMemory waits until the owner of the backlog says that it has all of it in memory;
// an empty owner says that nobody did for long.
func (b backlog) awaitInMemory(ctx context.Context, c *client.Client) (owner string, epoch int64, err error) {
	for end := time.Now().Add(inMemory); time.Now().Before(end); {
		shard, err := lanedShard(ctx, c)
		if err != nil {
			return "", 0, err
		}
		i := slices.IndexFunc(b.Nodes, func(nd *stand.Node) bool { return nd.Name == shard.Owner })
		if i >= 0 {
			ready, err := b.Nodes[i].ReadyTasks(ctx, plan.Laned)
			if err == nil && ready >= shard.Depth.Ready+shard.Depth.Scheduled {
				return shard.Owner, shard.Epoch, nil
			}
		}
		if err := b.sleep(ctx, 50*time.Millisecond); err != nil {
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
func (b backlog) awaitGone(ctx context.Context, c *client.Client) error {
	return b.awaitNone(ctx, "tasks are left of the backlog", 50*time.Millisecond, func() (int64, error) {
		status, err := c.DescribeTopic(ctx, plan.Laned)
		return unfinished(&status), err
	})
}
