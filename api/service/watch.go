package service

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/position"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

const (
	// watchBeat is the longest that a watcher goes without a frame. Those in between
	// tell how far it is, though nothing that it looks for has happened.
	watchBeat = 5 * time.Second
	// watchFrame bounds the changes of a frame.
	watchFrame = 1000
	// maxWatchIDs bounds the ids that a watch may ask for.
	maxWatchIDs = 100
)

// WatchFilter says which changes of a topic are meant: those that everything which is
// set matches.
type WatchFilter struct {
	IDs   []string // any of these
	Kinds []store.ChangeKind

	Attributes []store.Attribute // all of them; the topic has to index them
}

// WatchOptions say where a watch begins and what it looks for.
type WatchOptions struct {
	Topic  string
	Cursor []byte // behind what was seen before; nil: see Oldest
	Oldest bool   // without a cursor: begin with the oldest change that is kept, not with the next one
	Filter WatchFilter
}

// WatchFrame are changes in the order in which they were made, within each shard, and the
// cursor behind them.
type WatchFrame struct {
	Changes []ShardChange
	Cursor  []byte
}

// ShardChange is a change and where its position counts.
type ShardChange struct {
	Shard int
	store.Change
}

// Watch is one watcher of a topic. Next is called by one goroutine at a time, and Close
// ends it.
type Watch struct {
	from   *Watches
	topic  string
	filter WatchFilter
	tail   *tail
	at     position.Set
	begun  bool
	last   time.Time // of a frame
}

// Watches is what follows the changes of topics.
type Watches struct {
	logs
	limits *limits
	tails  tails
}

// Open begins to watch a topic. What changes once it has returned is told, and what did
// behind a cursor.
func (s *Watches) Open(ctx context.Context, o WatchOptions) (*Watch, error) {
	if err := s.node.Serving(); err != nil {
		return nil, err
	}
	if err := s.limits.checkWatch(&o); err != nil {
		return nil, err
	}
	if _, e := s.node.Topics().Open(ctx, o.Topic, false); e != nil {
		return nil, e
	}
	t, err := s.node.Topics().Read(ctx, o.Topic) // another node may have changed it just now
	if err != nil {
		return nil, problem.AsError(err)
	}
	if t.WatchRetention == 0 {
		return nil, errNotWatched(o.Topic)
	}
	if err := o.Filter.indexedBy(t.Indexed); err != nil {
		return nil, err
	}
	if err := s.node.Topics().KeepLogs(ctx, place.Shards(&t), t.Watching()); err != nil {
		return nil, problem.AsError(err)
	}
	at, e := s.beginAt(ctx, &t, &o)
	if e != nil {
		return nil, e
	}
	return &Watch{from: s, topic: o.Topic, filter: o.Filter, tail: s.tails.join(&s.logs, o.Topic), at: at, last: time.Now()}, nil
}

func (l *limits) checkWatch(o *WatchOptions) *problem.Error {
	if err := actors.CheckTopicName("topic", o.Topic); err != nil {
		return err
	}
	if o.Cursor != nil && o.Oldest {
		return problem.BadField("from", "BAD_CURSOR", "from and cursor exclude each other")
	}
	if len(o.Filter.IDs) > maxWatchIDs {
		return problem.BadField("ids", "BATCH_SIZE", "%d ids; at most %d are allowed", len(o.Filter.IDs), maxWatchIDs)
	}
	if err := l.checkAttributes(o.Filter.Attributes); err != nil {
		return err
	}
	for _, id := range o.Filter.IDs {
		if err := l.checkID(id); err != nil {
			err.Field = "ids"
			return err
		}
	}
	return nil
}

// beginAt is where a watch begins in each log.
func (s *Watches) beginAt(ctx context.Context, t *store.Topic, o *WatchOptions) (position.Set, *problem.Error) {
	at := make(position.Set)
	for _, shard := range place.Shards(t) {
		at[shard.N] = 0
	}
	if o.Cursor != nil {
		known, e := position.Parse(t.Name, o.Cursor, actors.MaxShardNumber)
		if e == nil && !known.Within(t.End()) {
			e = position.BadCursor() // each shard is a read, and stays in the cursor
		}
		if e != nil {
			return nil, e
		}
		maps.Copy(at, known)
	}
	shards := at.Shards(t.Name)
	reads := make([]store.LogRead, len(shards))
	for i, shard := range shards {
		reads[i] = store.LogRead{Shard: shard, After: at[shard.N]}
		if o.Oldest {
			reads[i].After = store.FromOldest
		}
	}
	pages, err := s.changes(ctx, reads)
	if err != nil {
		return nil, problem.FromStore(err)
	}
	for i, page := range pages {
		n := shards[i].N
		switch {
		case o.Cursor != nil && page.Gap:
			return nil, errCursorExpired()
		case o.Cursor == nil && o.Oldest:
			at[n] = page.Next
		case o.Cursor == nil:
			at[n] = page.Last
		}
	}
	return at, nil
}

// Close ends the watch. Next must not run.
func (w *Watch) Close() { w.from.tails.leave(w.tail) }

// Next waits for the next frame: at once for the first one, which says where the watch
// begins, and not much longer than five seconds for any other. OutOfRange when the watch
// is so far behind that changes which it has not seen are not kept any more.
func (w *Watch) Next(ctx context.Context) (WatchFrame, error) {
	if !w.begun {
		w.begun = true
		return w.frame(nil), nil
	}
	beat := time.NewTimer(time.Until(w.last.Add(watchBeat)))
	defer beat.Stop()
	for {
		n, e := w.tail.since(w.at)
		if e == nil && n.known {
			e = w.filter.indexedBy(n.indexed)
		}
		if e != nil {
			return WatchFrame{}, e
		}
		found, moved, err := w.takeIn(ctx, &n)
		switch {
		case err != nil:
			return WatchFrame{}, err
		case len(found) > 0 || time.Since(w.last) >= watchBeat:
			return w.frame(found), nil
		case moved:
			continue
		}
		select {
		case <-n.more:
		case <-beat.C:
		case <-ctx.Done():
			return WatchFrame{}, problem.AsError(ctx.Err())
		}
	}
}

func (w *Watch) frame(changes []ShardChange) WatchFrame {
	w.last = time.Now()
	return WatchFrame{Changes: changes, Cursor: w.at.Cursor(w.topic)}
}

// TakeIn moves on over what is new, as far as there is room in a frame, and returns what
// of it is looked for. moved says that there was anything.
func (w *Watch) takeIn(ctx context.Context, n *news) (found []ShardChange, moved bool, err error) {
	if err := w.readBehind(ctx, n); err != nil {
		return nil, false, err
	}
	room := max(1, watchFrame/max(1, len(n.changes)))
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
			w.at[shard], moved = c.Position, true
		}
	}
	return found, moved, nil
}

// readBehind adds what the tail does not have to what there is for the watcher.
func (w *Watch) readBehind(ctx context.Context, n *news) error {
	missing := slices.Concat(n.behind, n.gone)
	reads := make([]store.LogRead, len(missing))
	for i, shard := range missing {
		reads[i] = store.LogRead{Shard: store.Shard{Topic: w.topic, N: shard}, After: w.at[shard], Limit: max(16, 4*watchFrame/len(missing))}
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

func (f *WatchFilter) matches(c *store.Change) bool {
	if len(f.IDs) > 0 && !slices.Contains(f.IDs, c.ID) || len(f.Kinds) > 0 && !slices.Contains(f.Kinds, c.Kind) {
		return false
	}
	return !slices.ContainsFunc(f.Attributes, func(a store.Attribute) bool { return !slices.Contains(c.Attributes, a) })
}

// indexedBy refuses attributes that changes do not tell.
func (f *WatchFilter) indexedBy(indexed store.IndexSet) *problem.Error {
	for _, a := range f.Attributes {
		if !indexed.Has(a.Key) {
			return problem.BadField("attributes", "NOT_INDEXED", "attribute %q is not indexed: only those of the topic's indexed_attributes can be watched", a.Key)
		}
	}
	return nil
}
