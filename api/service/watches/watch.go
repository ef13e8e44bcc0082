package watches

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/position"
	"github.com/ddq-io/ddq/store"
)

const (
	// heartbeat is the longest that a watcher goes without a frame. Those in between
	// tell how far it is, though nothing that it looks for has happened.
	heartbeat = 5 * time.Second
	// frameSize bounds the changes of a frame.
	frameSize = 1000
)

// Watch is one watcher of a topic. Next is called by one goroutine at a time, and Close
// ends it.
type Watch struct {
	from   *Watches
	topic  string
	filter Filter
	tail   *tail
	at     position.Set
	begun  bool
	last   time.Time // of a frame

	servers uint64 // from which at was read
}

// Frame are changes in the order in which they were made, within each shard, and the
// cursor behind them.
type Frame struct {
	Changes []ShardChange
	Cursor  []byte
}

// ShardChange is a change and where its position counts.
type ShardChange struct {
	Shard int
	store.Change
}

// Close ends the watch. Next must not run.
func (w *Watch) Close() { w.from.tails.leave(w.tail) }

// Next waits for the next frame: at once for the first one, which says where the watch
// begins, and not much longer than five seconds for any other. OutOfRange when the watch
// is so far behind that changes which it has not seen are not kept any more.
func (w *Watch) Next(ctx context.Context) (Frame, error) {
	if !w.begun {
		w.begun = true
		return w.frame(nil), nil
	}
	beat := time.NewTimer(time.Until(w.last.Add(heartbeat)))
	defer beat.Stop()
	for {
		n, e := w.tail.since(w.at)
		if e == nil && n.known {
			e = w.filter.indexedBy(n.indexed)
		}
		if e == nil && n.known && n.servers != w.servers {
			e = w.from.verify(ctx, w.topic, w.at)
			w.servers = n.servers
		}
		if e != nil {
			return Frame{}, e
		}
		found, moved, err := w.takeIn(ctx, &n)
		switch {
		case err != nil:
			return Frame{}, err
		case len(found) > 0 || time.Since(w.last) >= heartbeat:
			return w.frame(found), nil
		case moved:
			continue
		}
		select {
		case <-n.more:
		case <-beat.C:
		case <-ctx.Done():
			return Frame{}, problem.AsError(ctx.Err())
		}
	}
}

func (w *Watch) frame(changes []ShardChange) Frame {
	w.last = time.Now()
	return Frame{Changes: changes, Cursor: w.at.Cursor(w.topic, w.from.node.Membership().ReadQueues())}
}

// TakeIn moves on over what is new, as far as there is room in a frame, and returns what
// of it is looked for. moved says that there was anything.
func (w *Watch) takeIn(ctx context.Context, n *news) (found []ShardChange, moved bool, err error) {
	if err := w.readBehind(ctx, n); err != nil {
		return nil, false, err
	}
	room := max(1, frameSize/max(1, len(n.changes)))
	for _, shard := range slices.Sorted(maps.Keys(n.changes)) {
		had := len(found)
		for i := range n.changes[shard] {
			c := &n.changes[shard][i]
			if w.filter.matches(c) {
				if len(found)-had == room {
					break
				}
				found = append(found, ShardChange{shard, *c})
			}
			w.at[shard], moved = position.Behind(c), true
		}
	}
	return found, moved, nil
}

// readBehind adds what the tail does not have to what there is for the watcher.
func (w *Watch) readBehind(ctx context.Context, n *news) error {
	missing := slices.Concat(n.behind, n.gone)
	reads := make([]store.LogRead, len(missing))
	for i, shard := range missing {
		reads[i] = store.LogRead{Shard: store.Shard{Topic: w.topic, N: shard}, After: w.at[shard].Position, Limit: max(16, 4*frameSize/len(missing))}
	}
	pages, err := w.from.changes(ctx, reads)
	if err != nil {
		return problem.AsError(err)
	}
	for i, page := range pages {
		shard := missing[i]
		switch {
		case page.Gap:
			return errCursorExpired()
		case len(page.Changes) > 0:
			n.changes[shard] = page.Changes
		case slices.Contains(n.gone, shard):
			delete(w.at, shard)
		}
	}
	return nil
}
