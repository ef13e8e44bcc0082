package watches

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
	// maxIDs bounds the ids that a watch may ask for.
	maxIDs = 100
	// maxLast bounds how many changes of a shard a watch may begin with.
	maxLast = 1000
)

// Filter says which changes of a topic are meant: those that everything which is
// set matches.
type Filter struct {
	IDs   []string // any of these
	Kinds []store.ChangeKind

	Attributes []store.Attribute // all of them; the topic has to index them
}

// Options say where a watch begins and what it looks for.
type Options struct {
	Topic  string
	Cursor []byte // behind what was seen before; nil: see Oldest
	Oldest bool   // without a cursor: begin with the oldest change that is kept, not with the next one
	Last   int    // without either: begin with the last changes that are kept, this many of each shard at most
	Filter Filter
}

// Watches is what follows the changes of topics.
type Watches struct {
	logs
	limits Limits
	tails  tails
}

// Limits check what a watch looks for.
type Limits interface {
	CheckID(id string) *problem.Error
	CheckAttributes(attributes []store.Attribute) *problem.Error
}

// New returns what follows the changes of a node's topics.
func New(node *actors.Node, log store.Log, limits Limits) *Watches {
	return &Watches{logs: logs{node, log}, limits: limits}
}

// Open begins to watch a topic. What changes once it has returned is told, and what did
// behind a cursor.
func (s *Watches) Open(ctx context.Context, o Options) (*Watch, error) {
	if err := s.node.Serving(); err != nil {
		return nil, err
	}
	if err := o.check(s.limits); err != nil {
		return nil, err
	}
	if _, e := s.node.Topics().Open(ctx, o.Topic, false); e != nil {
		return nil, e
	}
	t, err := s.node.Topics().Read(ctx, o.Topic) // another node may have changed it just now
	if err != nil {
		return nil, problem.AsError(err)
	}
	if t.Watch.Retention == 0 {
		return nil, errNotWatched(o.Topic)
	}
	if err := o.Filter.indexedBy(t.Indexed); err != nil {
		return nil, err
	}
	if err := s.node.Topics().KeepLogs(ctx, place.Shards(&t), t.Watching()); err != nil {
		return nil, problem.AsError(err)
	}
	servers := s.servers(ctx, place.Shards(&t))
	at, e := s.beginAt(ctx, &t, &o)
	if e == nil {
		e = s.verify(ctx, t.Name, at)
	}
	if e != nil {
		return nil, e
	}
	return &Watch{from: s, topic: o.Topic, filter: o.Filter, tail: s.tails.join(&s.logs, o.Topic), at: at, servers: servers, last: time.Now()}, nil
}

func (o *Options) check(l Limits) *problem.Error {
	if err := actors.CheckTopicName("topic", o.Topic); err != nil {
		return err
	}
	if o.Cursor != nil && o.Oldest {
		return problem.BadField("from", "BAD_CURSOR", "from and cursor exclude each other")
	}
	if o.Last < 0 || o.Last > maxLast {
		return problem.BadField("last", "OUT_OF_RANGE_FIELD", "last must be 0 to %d", maxLast)
	}
	if o.Last > 0 && (o.Cursor != nil || o.Oldest) {
		return problem.BadField("last", "BAD_CURSOR", "last is for a watch without a cursor, which does not begin with the oldest change")
	}
	if len(o.Filter.IDs) > maxIDs {
		return problem.BadField("ids", "BATCH_SIZE", "%d ids; at most %d are allowed", len(o.Filter.IDs), maxIDs)
	}
	if err := l.CheckAttributes(o.Filter.Attributes); err != nil {
		return err
	}
	for _, id := range o.Filter.IDs {
		if err := l.CheckID(id); err != nil {
			err.Field = "ids"
			return err
		}
	}
	return nil
}

// beginAt is where a watch begins in each log.
func (s *Watches) beginAt(ctx context.Context, t *store.Topic, o *Options) (position.Set, *problem.Error) {
	at := make(position.Set)
	for _, shard := range place.Shards(t) {
		at[shard.N] = position.At{}
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
		reads[i] = store.LogRead{Shard: shard, After: at[shard.N].Position}
		if o.Oldest || o.Last > 0 {
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
			at[n] = position.At{Position: page.Next}
		case o.Cursor == nil && o.Last > 0:
			at[n] = position.At{Position: max(page.Next, page.Last-int64(o.Last))}
		case o.Cursor == nil:
			at[n] = position.At{Position: page.Last}
		}
	}
	return at, nil
}

func (f *Filter) matches(c *store.Change) bool {
	if len(f.IDs) > 0 && !slices.Contains(f.IDs, c.ID) || len(f.Kinds) > 0 && !slices.Contains(f.Kinds, c.Kind) {
		return false
	}
	return !slices.ContainsFunc(f.Attributes, func(a store.Attribute) bool { return !slices.Contains(c.Attributes, a) })
}

// indexedBy refuses attributes that changes do not tell.
func (f *Filter) indexedBy(indexed store.IndexSet) *problem.Error {
	for _, a := range f.Attributes {
		if !indexed.Has(a.Key) {
			return problem.BadField("attributes", "NOT_INDEXED", "attribute %q is not indexed: only those of the topic's indexed_attributes can be watched", a.Key)
		}
	}
	return nil
}
