package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/party"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
	"github.com/ddq-io/ddq/bench/ledger"
)

// startWatcher starts a process that goes on where another one was; with an empty name it
// is the first.
func (r *round) startWatcher(name, follows string) (err error) {
	r.watcher, err = r.join(party.Config{Role: "watcher", Config: plan.Config{Name: name}, Follows: follows})
	return err
}

// replaceWatcher kills the watcher in the midst of the round, and another one goes on
// behind what it wrote down last.
func (r *round) replaceWatcher(ctx context.Context) error {
	if err := r.sleep(ctx, time.Until(r.start)+r.span/3); err != nil {
		return err
	}
	if err := r.watcher.Kill(); err != nil {
		return err
	}
	return r.startWatcher("watcher-2", r.watcher.Name)
}

// finishWatch lets the watcher come to the end, and writes down what the logs of its
// topics have by then.
func (r *round) finishWatch(ctx context.Context) error {
	err := r.Nodes[0].Ask(func(c *client.Client) error {
		for _, o := range plan.Watches(r.herd) {
			if err := r.mark(ctx, c, o.Topic); err != nil {
				return fmt.Errorf("mark the end of %s: %w", o.Topic, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.finish(ctx, []*process{r.watcher}, "watcher"); err != nil {
		return err
	}
	return r.Nodes[0].Ask(func(c *client.Client) error {
		for _, o := range plan.Watches(r.herd) {
			if err := r.readLog(ctx, c, o.Topic); err != nil {
				return fmt.Errorf("read the log of %s: %w", o.Topic, err)
			}
		}
		return nil
	})
}

// mark enqueues the markers of a topic, which nobody delivers.
func (r *round) mark(ctx context.Context, c *client.Client, topic string) error {
	tasks := make([]client.Task, plan.Markers)
	for i := range tasks {
		tasks[i] = client.Task{Topic: topic, ID: fmt.Sprint(ledger.Marker, i), Delay: time.Hour, Attributes: map[string]string{plan.TagAttribute: plan.WatchedHalf}}
	}
	results, err := c.EnqueueBatch(ctx, tasks)
	for _, one := range results {
		err = errors.Join(err, one.Err)
	}
	return err
}

// noMore is how many responses in a row without a change say that a log has no more.
const noMore = 3

// logBatch is how many of its changes are written down at a time.
const logBatch = 250

// readLog writes down everything in the log of a topic, up to the last marker, or to where
// the server says that it has no more.
func (r *round) readLog(ctx context.Context, c *client.Client, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*stand.UpWithin)
	defer cancel()
	empty, left := 0, plan.Markers
	o := client.WatchOptions{Topic: topic, FromOldest: true, Progress: func([]byte) {
		if empty++; empty == noMore {
			cancel()
		}
	}}
	var batch []ledger.Event
	defer func() { r.ledger.Append(batch...) }()
	for change, err := range c.Watch(ctx, o) {
		if empty >= noMore {
			r.logf("the log of %s has no end", topic)
			return nil
		}
		if err != nil {
			return err
		}
		empty = 0
		batch = append(batch, party.ChangeEvent(ledger.Logged, &o, &change))
		if strings.HasPrefix(change.ID, ledger.Marker) {
			left--
		}
		if left == 0 {
			return nil
		}
		if len(batch) == logBatch {
			r.ledger.Append(batch...)
			batch = batch[:0]
		}
	}
	return nil
}
