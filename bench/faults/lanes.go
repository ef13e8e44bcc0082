package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

const (
	// laned is a topic of one shard whose deliveries are paused until everything else is
	// over. Its tasks, which are stored before anything is broken, wait as a backlog: who
	// goes first then is known.
	laned = "faults-laned"
	// lanedWorkers is how many of its tasks a worker process handles at a time, and
	// lanedInFlight how many it has at most.
	lanedWorkers  = 2
	lanedInFlight = 3
	lanedAgeing   = 10
	// inMemory is how long the backlog may take to be in the memory of its node.
	inMemory = 3 * time.Second
)

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

// allTopics are the topics of a round, and that of the backlog.
func allTopics() []string { return append(topics(), laned) }

// storeBacklog enqueues the tasks of the backlog.
func (r *round) storeBacklog(ctx context.Context, c *client.Client) error {
	var tasks []client.Task
	var calls []ledger.Event
	for _, l := range backlog() {
		for range l.n {
			t := client.Task{
				Topic: laned, ID: fmt.Sprint("lane-", len(tasks)), Payload: []byte(l.fairness), Priority: l.priority, FairnessKey: l.fairness, FairnessWeight: l.weight,
			}
			tasks = append(tasks, t)
			calls = append(calls, ledger.Event{
				Kind: ledger.Call, Op: ledger.Enqueue, Call: r.ledger.NextCall(), Topic: laned, Task: t.ID, Sum: tap.Sum(t.Payload),
				Priority: l.priority, Lane: l.fairness, Weight: l.weight,
			})
		}
	}
	r.ledger.Append(calls...)
	results, err := c.EnqueueBatch(ctx, tasks)
	if err != nil {
		return err
	}
	answers := make([]ledger.Event, len(calls))
	for i, call := range calls {
		err = errors.Join(err, results[i].Err)
		answers[i] = ledger.Event{
			Kind: ledger.Answer, Op: call.Op, Call: call.Call, Topic: laned, Task: call.Task, Result: ledger.OK, Due: tap.Millis(results[i].Due),
		}
	}
	r.ledger.Append(answers...)
	return err
}

// letBacklogGo lets the backlog be delivered, and writes down whether it was in the memory
// of one node all the while.
func (r *round) letBacklogGo(ctx context.Context) error {
	return r.nodes[0].ask(func(c *client.Client) error {
		owner, epoch, err := r.awaitBacklog(ctx, c)
		if err != nil {
			return err
		}
		err = r.changeTopic(ledger.Event{Op: ledger.Resume, Topic: laned}, func() (client.Topic, error) { return c.ResumeTopic(ctx, laned) })
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
			r.logf("the backlog of %s was not at one node", laned)
			return nil
		}
		// Twice that many, as what comes back from a worker is on its way, too.
		r.ledger.Append(ledger.Event{Kind: ledger.Ordered, Topic: laned, Cap: 2 * r.setting.workers * lanedInFlight})
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
		i := slices.IndexFunc(r.nodes, func(nd *node) bool { return nd.name == shard.Owner })
		if i >= 0 {
			ready, err := r.nodes[i].readyTasks(ctx, laned)
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
	for shard, err := range c.Shards(ctx, laned) {
		return shard, err
	}
	return client.Shard{}, errors.New("no shard")
}

// awaitGone waits until the backlog is, or nothing happens any more.
func (r *round) awaitGone(ctx context.Context, c *client.Client) error {
	return r.awaitNone(ctx, "tasks are left of the backlog", 50*time.Millisecond, func() (int64, error) {
		status, err := c.DescribeTopic(ctx, laned)
		return unfinished(&status), err
	})
}

// readyTasks asks a node how many tasks of a topic wait in its memory for a worker.
func (nd *node) readyTasks(ctx context.Context, topic string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+nd.httpAddr+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), fmt.Sprintf("ddq_ready_tasks{topic=%q} ", topic)); ok {
			n, err := strconv.ParseFloat(text, 64)
			return int64(n), err
		}
	}
	return 0, lines.Err()
}
