package faults

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// watched is how long topics keep what happens: longer than any clock is set ahead.
const watched = 48 * time.Hour

// tagAttribute is an attribute of the tasks of one topic, by which half of them are
// watched. It is indexed.
const (
	tagAttribute = "half"
	watchedHalf  = "watched"
	otherHalf    = "other"
)

// tagOf is that of a task; empty: none.
func tagOf(seed uint64, topic, id string) string {
	switch {
	case topic != kept:
		return ""
	case draw(seed, id, "half")%2 == 0:
		return watchedHalf
	}
	return otherHalf
}

// watches are what the watchers of a round follow: one topic, and half of another. A herd
// is not watched, as what it takes is to be seen without that.
func watches(herd int) []client.WatchOptions {
	all := []client.WatchOptions{{Topic: kept, FromOldest: true, Attributes: map[string]string{tagAttribute: watchedHalf}}}
	if herd == 0 {
		all = append(all, client.WatchOptions{Topic: plain, FromOldest: true})
	}
	return all
}

const (
	// markers is how many tasks tell a watcher that it has seen everything: enough for
	// all shards of a topic.
	markers = 64
	// lastWords is how long a watcher that is to end waits for the next change.
	lastWords = 30 * time.Second
)

// watcher follows topics, and writes down what it is told with the cursor behind it.
type watcher struct {
	c      *partyConfig
	client *client.Client
	log    *ledger.Writer
	told   atomic.Int64 // changes
}

// watch goes on where an earlier process was, until its orders end and it has seen all
// markers.
func watch(ctx context.Context, c *partyConfig, log *ledger.Writer, orders io.Reader) (err error) {
	cursors, err := ledger.Cursors(c.Dir, c.Follows)
	if err != nil {
		return err
	}
	cl, err := client.Dial(c.Addr, client.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &watcher{c: c, client: cl, log: log}
	go obey(orders, func() { w.giveUp(ctx, stop) }, func(time.Duration) {}) // ends with the process at the latest
	var group errgroup.Group
	for _, o := range watches(c.Herd) {
		if o.Cursor, err = base64.StdEncoding.DecodeString(cursors[o.Topic]); err != nil {
			return err
		}
		group.Go(func() error {
			w.follow(ctx, o)
			return nil
		})
	}
	return group.Wait()
}

// giveUp calls stop when there was no change for long.
func (w *watcher) giveUp(ctx context.Context, stop func()) {
	for before := int64(-1); before != w.told.Load(); {
		before = w.told.Load()
		select {
		case <-ctx.Done():
		case <-time.After(lastWords):
		}
	}
	stop()
}

// follow watches until ctx ends or everything was seen. The SDK goes on by itself when
// nodes die; a watch that ends nevertheless begins again, and the ledger has why.
func (w *watcher) follow(ctx context.Context, o client.WatchOptions) {
	left := markers
	for {
		if len(o.Cursor) == 0 {
			o.Cursor, left = nil, markers
		}
		begin := ledger.Event{Kind: ledger.Watching, Watch: o.Topic, Topic: o.Topic, Tag: o.Attributes[tagAttribute], Cursor: base64.StdEncoding.EncodeToString(o.Cursor)}
		w.log.Append(begin)
		for change, err := range w.client.Watch(ctx, o) {
			if err != nil {
				w.ended(ctx, &o, err)
				break
			}
			e := changeEvent(ledger.Told, &o, &change)
			o.Cursor = change.Cursor()
			e.Cursor = base64.StdEncoding.EncodeToString(o.Cursor)
			w.log.Append(e)
			w.told.Add(1)
			if strings.HasPrefix(change.ID, ledger.Marker) {
				if left--; left == 0 {
					return
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// ended writes down why a watch did not go on. One that has missed something begins anew.
func (w *watcher) ended(ctx context.Context, o *client.WatchOptions, err error) {
	e := ledger.Event{Kind: ledger.Failed, Watch: o.Topic, Topic: o.Topic, Reason: err.Error()}
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, client.ErrCursorExpired):
		e.Kind, o.Cursor = ledger.Expired, nil
	}
	w.log.Append(e)
}

// changeEvent is a change as ledgers have it.
func changeEvent(kind ledger.Kind, o *client.WatchOptions, c *client.TaskChange) ledger.Event {
	change := &ledger.Change{
		Shard: c.Shard, Position: c.Position, At: c.Time.UnixMicro(), What: c.Kind.String(), Attempt: c.Attempt, Due: tap.Millis(c.Due),
		Version: c.Version, Worker: c.Worker, Tag: c.Attributes[tagAttribute],
	}
	if c.Reason != 0 {
		change.Reason = c.Reason.String()
	}
	if c.Outcome != 0 {
		change.Outcome = c.Outcome.String()
	}
	return ledger.Event{Kind: kind, Watch: o.Topic, Topic: o.Topic, Task: c.ID, Change: change}
}

// startWatcher starts a process that goes on where another one was; with an empty name it
// is the first.
func (r *round) startWatcher(name, follows string) (err error) {
	r.watcher, err = r.join(partyConfig{Role: "watcher", Name: name, Follows: follows})
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
	err := r.nodes[0].ask(func(c *client.Client) error {
		for _, o := range watches(r.herd) {
			if err := r.mark(ctx, c, o.Topic); err != nil {
				return fmt.Errorf("mark the end of %s: %w", o.Topic, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.finish(ctx, []*party{r.watcher}, "watcher"); err != nil {
		return err
	}
	return r.nodes[0].ask(func(c *client.Client) error {
		for _, o := range watches(r.herd) {
			if err := r.readLog(ctx, c, o.Topic); err != nil {
				return fmt.Errorf("read the log of %s: %w", o.Topic, err)
			}
		}
		return nil
	})
}

// mark enqueues the markers of a topic, which nobody delivers.
func (r *round) mark(ctx context.Context, c *client.Client, topic string) error {
	tasks := make([]client.Task, markers)
	for i := range tasks {
		tasks[i] = client.Task{Topic: topic, ID: fmt.Sprint(ledger.Marker, i), Delay: time.Hour, Attributes: map[string]string{tagAttribute: watchedHalf}}
	}
	results, err := c.EnqueueBatch(ctx, tasks)
	for _, one := range results {
		err = errors.Join(err, one.Err)
	}
	return err
}

// noMore is how many responses in a row without a change say that a log has no more.
const noMore = 3

// readLog writes down everything in the log of a topic, up to the last marker, or to where
// the server says that it has no more.
func (r *round) readLog(ctx context.Context, c *client.Client, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*upWithin)
	defer cancel()
	empty, left := 0, markers
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
		batch = append(batch, changeEvent(ledger.Logged, &o, &change))
		if strings.HasPrefix(change.ID, ledger.Marker) {
			left--
		}
		if left == 0 {
			return nil
		}
		if len(batch) == batchTasks {
			r.ledger.Append(batch...)
			batch = batch[:0]
		}
	}
	return nil
}
