package actors

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// Get returns a task. With an empty topic every topic is searched; the same id in
// several is refused.
func (s *System) Get(ctx context.Context, topic, id string) (Found, error) {
	f, err := s.find(ctx, topic, id)
	if err != nil {
		return Found{}, err
	}
	return f, nil
}

func (s *System) find(ctx context.Context, topic, id string) (Found, *Error) {
	if err := s.cfg.Limits.checkID(id); err != nil {
		return Found{}, err
	}
	topics, e := s.searched(ctx, topic)
	if e != nil {
		return Found{}, e
	}
	var hit *Found
	for i := range topics {
		f, err := s.findIn(ctx, &topics[i], id)
		switch {
		case err != nil:
			return Found{}, storeError(err)
		case f == nil:
		case hit != nil:
			return Found{}, &Error{Kind: Precondition, Reason: "AMBIGUOUS_ID", Field: "topic",
				Message: "tasks of this id are in topics " + hit.Topic + " and " + f.Topic + "; name one"}
		default:
			hit = f
		}
	}
	if hit == nil {
		return Found{}, errNoTask(id)
	}
	return *hit, nil
}

// searched are the topics to look in.
func (s *System) searched(ctx context.Context, topic string) ([]store.Topic, *Error) {
	if topic == "" {
		topics, err := s.store.ListTopics(ctx)
		return topics, storeError(err)
	}
	if err := checkTopicName("topic", topic); err != nil {
		return nil, err
	}
	t, err := s.store.GetTopic(ctx, topic)
	return []store.Topic{t}, storeError(err)
}

func (s *System) findIn(ctx context.Context, t *store.Topic, id string) (*Found, error) {
	_, found, err := s.store.Get(ctx, placeOf(t, id), []string{id})
	if err != nil || found[0].State == store.StateUnknown {
		return nil, err
	}
	f := foundIn(t, found[0])
	return &f, nil
}

func foundIn(t *store.Topic, snap store.Snapshot) Found {
	return Found{Topic: t.Name, Snapshot: snap, MaxRetries: retriesOf(&snap.Task, t).max}
}

func placeOf(t *store.Topic, id string) store.Shard {
	return store.Shard{Topic: t.Name, N: shardOf(id, t.Shards)}
}

// Delete removes a pending task and says where it was. With an empty topic every
// topic is searched.
func (s *System) Delete(ctx context.Context, topic, id string) (foundIn string, err error) {
	f, e := s.find(ctx, topic, id)
	if e != nil {
		return "", e
	}
	return f.Topic, s.change(ctx, f.Topic, id, func(place store.Shard) ([]store.RemoveResult, any, error) {
		_, results, err := s.store.Remove(ctx, place, []string{id})
		return results, &pendingGone{ids: []string{id}}, err
	})
}

// Reschedule moves the due time of a pending task.
func (s *System) Reschedule(ctx context.Context, topic, id string, w When) (foundIn string, due store.Millis, err error) {
	f, e := s.find(ctx, topic, id)
	if e != nil {
		return "", 0, e
	}
	t, err := s.store.GetTopic(ctx, f.Topic)
	if err != nil {
		return "", 0, failure(err)
	}
	if e := w.check(&t, s.clock.millis()); e != nil {
		return "", 0, e
	}
	if due = w.At; due == 0 {
		due = ceilMillis(s.clock.Latest().Add(w.Delay))
	}
	return f.Topic, due, s.change(ctx, f.Topic, id, func(place store.Shard) ([]store.RemoveResult, any, error) {
		stamp, results, err := s.store.Reschedule(ctx, place, []store.Move{{ID: id, Due: due}})
		return results, &pendingChanged{task: store.Entry{ID: id, Due: due}, seq: stamp.Seq}, err
	})
}

// change edits one pending task in the store and then tells its shard.
func (s *System) change(ctx context.Context, topic, id string, edit func(store.Shard) ([]store.RemoveResult, any, error)) error {
	ref, e := s.topic(ctx, topic, false)
	if e != nil {
		return e
	}
	place := placeOf(ref.config.Load(), id)
	var results []store.RemoveResult
	var note any
	_, err := resolve(ctx, func() (err error) {
		results, note, err = edit(place)
		return err
	})
	if err != nil {
		return failure(err)
	}
	switch r := results[0]; r.Status {
	case store.OK:
		s.send(ref.shards[place.N], note)
		return nil
	case store.NotFound:
		return errNoTask(id)
	default:
		return errState(id, r.State)
	}
}

// List pages through the tasks of a topic in one state; StateUnknown lists all
// live ones. A page may have fewer tasks than size and still be followed by more.
func (s *System) List(ctx context.Context, topic string, state store.State, size int, token string) (tasks []Found, next string, err error) {
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
	return s.page(ctx, topic, kinds, size, token, func(f *store.Snapshot) bool {
		return state == store.StateUnknown || f.State == state
	})
}

// emptyPages is how many pages without a match one call reads at most.
const emptyPages = 20

// page reads a page of the lists of a topic's shards, one after the other.
func (s *System) page(ctx context.Context, topic string, kinds []store.Kind, size int, token string, match func(*store.Snapshot) bool) ([]Found, string, error) {
	if size < 0 {
		return nil, "", invalid("page_size", "OUT_OF_RANGE_FIELD", "page_size must not be negative")
	}
	t, e := s.searched(ctx, or(topic, "?")) // an empty name is refused like a bad one
	if e != nil {
		return nil, "", e
	}
	at, ok := decodeCursor(token)
	if !ok || at.list >= len(kinds)*t[0].Shards {
		return nil, "", storeError(store.ErrBadCursor)
	}
	size = min(or(size, 100), s.cfg.Limits.PageSize)
	var tasks []Found
	for range emptyPages {
		shard := store.Shard{Topic: t[0].Name, N: at.list % t[0].Shards}
		found, next, err := s.store.List(ctx, shard, kinds[at.list/t[0].Shards], at.cursor, size-len(tasks))
		if err != nil {
			return nil, "", failure(err)
		}
		for i := range found {
			if match(&found[i]) {
				tasks = append(tasks, foundIn(&t[0], found[i]))
			}
		}
		if at.cursor = next; next == "" {
			at.list++
		}
		if at.list >= len(kinds)*t[0].Shards {
			return tasks, "", nil
		}
		if len(tasks) >= size {
			break
		}
	}
	return tasks, at.encode(), nil
}

// cursor is a position in the lists of a topic: which one, and where in it.
type cursor struct {
	list   int
	cursor string
}

func (c cursor) encode() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(c.list) + ":" + c.cursor))
}

func decodeCursor(token string) (c cursor, ok bool) {
	if token == "" {
		return c, true
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return c, false
	}
	list, rest, ok := strings.Cut(string(b), ":")
	n, err := strconv.Atoi(list)
	return cursor{n, rest}, ok && err == nil && n >= 0
}
