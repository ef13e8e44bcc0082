package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// page reads a page of the lists of a topic's shards, one after the other.
func (s *lookup) page(ctx context.Context, topic string, kinds []store.Kind, size int, token string, match func(*store.Snapshot) bool) ([]Found, string, error) {
	return s.walk(ctx, topic, kinds, size, token, match, func(ctx context.Context, _ *store.Topic, shard store.Shard, kind store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
		return s.store.List(ctx, shard, kind, cursor, limit)
	})
}

// emptyPages is how many pages without a match one call reads at most.
const emptyPages = 20

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
