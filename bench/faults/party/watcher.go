package party

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

const (
	// lastWords is how long a watcher that is to end waits for the next change.
	lastWords = 30 * time.Second
)

// watcher follows topics, and writes down what it is told with the cursor behind it.
type watcher struct {
	c      *Config
	client *client.Client
	log    *ledger.Writer
	told   atomic.Int64 // changes
}

// watch goes on where an earlier process was, until its orders end and it has seen all
// markers.
func watch(ctx context.Context, c *Config, log *ledger.Writer, orders io.Reader) (err error) {
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
	for _, o := range plan.Watches(c.Herd) {
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
	left := plan.Markers
	for {
		if len(o.Cursor) == 0 {
			o.Cursor, left = nil, plan.Markers
		}
		begin := ledger.Event{Kind: ledger.Watching, Watch: o.Topic, Topic: o.Topic, Tag: o.Attributes[plan.TagAttribute], Cursor: base64.StdEncoding.EncodeToString(o.Cursor)}
		w.log.Append(begin)
		for change, err := range w.client.Watch(ctx, o) {
			if err != nil {
				w.ended(ctx, &o, err)
				break
			}
			e := ChangeEvent(ledger.Told, &o, &change)
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

// ChangeEvent is a change as ledgers have it.
func ChangeEvent(kind ledger.Kind, o *client.WatchOptions, c *client.TaskChange) ledger.Event {
	change := &ledger.Change{
		Shard: c.Shard, Position: c.Position, At: c.Time.UnixMicro(), What: c.Kind.String(), Attempt: c.Attempt, Due: tap.Millis(c.Due),
		Version: c.Version, Worker: c.Worker, Tag: c.Attributes[plan.TagAttribute],
	}
	if c.Reason != 0 {
		change.Reason = c.Reason.String()
	}
	if c.Outcome != 0 {
		change.Outcome = c.Outcome.String()
	}
	return ledger.Event{Kind: kind, Watch: o.Topic, Topic: o.Topic, Task: c.ID, Change: change}
}
