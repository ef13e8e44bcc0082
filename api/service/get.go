package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Get returns a task with its history. With an empty topic every topic is searched; the same id in
// several is refused.
func (s *Tasks) Get(ctx context.Context, topic, id string) (Found, error) {
	f, err := s.look.find(ctx, topic, id)
	if err != nil {
		return Found{}, err
	}
	found := []Found{f}
	if err := s.why.explain(ctx, found); err != nil {
		return Found{}, problem.AsError(err)
	}
	return s.look.withHistory(ctx, found[0])
}

// lookup finds tasks by id, and reads the lists of topics.
type lookup struct {
	store interface {
		store.Reader
		store.Catalog
	}
	limits *limits
}

func (s *lookup) find(ctx context.Context, topic, id string) (Found, *problem.Error) {
	if err := s.limits.checkID(id); err != nil {
		return Found{}, err
	}
	topics, e := s.topics(ctx, topic)
	if e != nil {
		return Found{}, e
	}
	var hit *Found
	for i := range topics {
		f, err := s.findIn(ctx, &topics[i], id)
		switch {
		case err != nil:
			return Found{}, problem.FromStore(err)
		case f == nil:
		case hit != nil:
			return Found{}, &problem.Error{Kind: problem.Precondition, Reason: "AMBIGUOUS_ID", Field: "topic",
				Message: "tasks of this id are in topics " + hit.Topic + " and " + f.Topic + "; name one"}
		default:
			hit = f
		}
	}
	if hit == nil {
		return Found{}, problem.NoTask(id)
	}
	return *hit, nil
}

// topics are those to look in: one by name, or all.
func (s *lookup) topics(ctx context.Context, topic string) ([]store.Topic, *problem.Error) {
	if topic == "" {
		topics, err := s.store.ListTopics(ctx)
		return topics, problem.FromStore(err)
	}
	if err := actors.CheckTopicName("topic", topic); err != nil {
		return nil, err
	}
	t, err := s.store.GetTopic(ctx, topic)
	return []store.Topic{t}, problem.FromStore(err)
}

func (s *lookup) findIn(ctx context.Context, t *store.Topic, id string) (*Found, error) {
	for _, place := range place.Candidates(t, id) {
		_, found, err := s.store.Get(ctx, place, []string{id})
		if err != nil {
			return nil, err
		}
		if found[0].State != store.StateUnknown {
			f := foundIn(t, found[0])
			f.Shard = place
			return &f, nil
		}
	}
	return nil, nil
}

func foundIn(t *store.Topic, snap store.Snapshot) Found {
	return Found{Topic: t.Name, Snapshot: snap, MaxRetries: snap.Task.RetryLimit(t), limits: t.Limits}
}

// Delete removes a pending task and says where it was. With an empty topic every
// topic is searched. When an answer was lost on the way, a refusal says nothing: the
// try without an answer may have done it.
func (s *Tasks) Delete(ctx context.Context, topic, id string) (foundIn string, err error) {
	topic, e := s.look.locate(ctx, topic, id)
	if e != nil {
		return "", e
	}
	ref, e := s.node.Topics().Open(ctx, topic, false)
	if e != nil {
		return topic, e
	}
	for _, place := range place.Candidates(ref.Config(), id) {
		var results []store.RemoveResult
		repeated, err := s.node.Resolve(ctx, func() (err error) {
			_, results, err = s.store.Remove(ctx, place, []string{id})
			return err
		})
		if err != nil {
			return topic, problem.AsError(err)
		}
		switch r := results[0]; {
		case r.Status == store.OK:
			ref.Deleted(place.N, id)
			return topic, nil
		case repeated:
			return topic, problem.AsError(store.ErrUnknown)
		case r.Status != store.NotFound:
			return topic, problem.WrongState(id, r.State)
		}
	}
	return topic, problem.NoTask(id)
}

// locate names the topic of a task. Where it was named, nothing is read: a server that
// was a primary until now may answer a read, and know nothing of the task, but no change.
func (s *lookup) locate(ctx context.Context, topic, id string) (string, *problem.Error) {
	if topic == "" {
		f, err := s.find(ctx, topic, id)
		return f.Topic, err
	}
	if err := s.limits.checkID(id); err != nil {
		return "", err
	}
	return topic, actors.CheckTopicName("topic", topic)
}

// List pages through the tasks of a topic in one state; StateUnknown lists all
// live ones. A page may have fewer tasks than size and still be followed by more.
func (s *Finder) List(ctx context.Context, topic string, state store.State, size int, token string) (tasks []Found, next string, err error) {
	kinds := []store.Kind{store.KindPending, store.KindRunning}
	switch state {
	case store.StateScheduled, store.StateReady, store.StateRetrying:
		kinds = kinds[:1]
	case store.StateRunning:
		kinds = kinds[1:]
	case store.StateDone:
		kinds = []store.Kind{store.KindDone}
	case store.StateDead, store.StateExpired:
		kinds = []store.Kind{store.KindDead}
	}
	tasks, next, err = s.look.page(ctx, topic, kinds, size, token, func(f *store.Snapshot) bool {
		return state == store.StateUnknown || f.State == state
	})
	if err != nil {
		return nil, "", err
	}
	return tasks, next, problem.AsError(s.why.explain(ctx, tasks))
}

// emptyPages is how many pages without a match one call reads at most.
const emptyPages = 20

// page reads a page of the lists of a topic's shards, one after the other.
func (s *lookup) page(ctx context.Context, topic string, kinds []store.Kind, size int, token string, match func(*store.Snapshot) bool) ([]Found, string, error) {
	return s.walk(ctx, topic, kinds, size, token, match, func(ctx context.Context, _ *store.Topic, shard store.Shard, kind store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
		return s.store.List(ctx, shard, kind, cursor, limit)
	})
}

// lister reads a page of the tasks of a kind, as List of a store does.
type lister func(ctx context.Context, t *store.Topic, shard store.Shard, kind store.Kind, cursor string, limit int) ([]store.Snapshot, string, error)

// walk is page with a say in how a page of a shard is read.
func (s *lookup) walk(ctx context.Context, topic string, kinds []store.Kind, size int, token string, match func(*store.Snapshot) bool, list lister) ([]Found, string, error) {
	if size < 0 {
		return nil, "", problem.BadField("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	t, e := s.topics(ctx, cmp.Or(topic, "?")) // an empty name is refused like a bad one
	if e != nil {
		return nil, "", e
	}
	at, ok := decodeCursor(token)
	if !ok || at.kind >= len(kinds) {
		return nil, "", problem.FromStore(store.ErrBadCursor)
	}
	shards := place.Shards(&t[0])
	size = min(cmp.Or(size, 100), s.limits.PageSize)
	var tasks []Found
	var bodies store.Bodies
	for range emptyPages {
		if !at.settle(shards) {
			if at = (cursor{kind: at.kind + 1}); at.kind == len(kinds) {
				return tasks, "", nil
			}
			continue
		}
		shard := store.Shard{Topic: t[0].Name, N: at.shard}
		found, next, err := list(ctx, &t[0], shard, kinds[at.kind], at.cursor, size-len(tasks))
		if err != nil {
			return nil, "", problem.AsError(err)
		}
		for i := range found {
			if match(&found[i]) {
				f := foundIn(&t[0], found[i])
				f.Shard = shard
				tasks = append(tasks, f)
				bodies.Add(&f.Task)
			}
		}
		if at.cursor = next; next == "" {
			at.shard++
		}
		if at.shard > shards[len(shards)-1].N && at.kind == len(kinds)-1 {
			return tasks, "", nil
		}
		if len(tasks) >= size || bodies.Full() {
			break
		}
	}
	return tasks, at.encode(), nil
}

// cursor is a position in the lists of a topic: which one, of which shard, and where
// in it.
type cursor struct {
	kind, shard int
	cursor      string
}

// settle moves on to the next shard that there is, and reports whether there is one.
func (c *cursor) settle(shards []store.Shard) bool {
	i := slices.IndexFunc(shards, func(s store.Shard) bool { return s.N >= c.shard })
	if i < 0 {
		return false
	}
	if shards[i].N != c.shard {
		c.shard, c.cursor = shards[i].N, ""
	}
	return true
}

func (c cursor) encode() string {
	return base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%d:%d:%s", c.kind, c.shard, c.cursor)))
}

func decodeCursor(token string) (c cursor, ok bool) {
	if token == "" {
		return c, true
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return c, false
	}
	parts := strings.SplitN(string(b), ":", 3)
	if len(parts) != 3 {
		return c, false
	}
	c.cursor = parts[2]
	var bad error
	c.kind, err = strconv.Atoi(parts[0])
	c.shard, bad = strconv.Atoi(parts[1])
	return c, err == nil && bad == nil && c.kind >= 0 && c.shard >= 0
}
