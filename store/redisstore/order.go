package redisstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// A member of the set of ordering keys has the length of the key in a byte, the key, the
// due time in milliseconds in 8 bytes, 0 for a task that was held, and the stored form
// of the id. Scripts know this too, in lua/order_key.lua.

// InOrder implements store.Reader.
func (s *reader) InOrder(ctx context.Context, shard store.Shard, keys []string, limit int) (store.Stamp, [][]store.Ordered, error) {
	found := make([][]store.Ordered, len(keys))
	stamp, err := s.batch(ctx, call{
		what: "in order", lua: s.lua.inOrder, shard: shard, parts: 1, read: true,
		ids: func(i int) string { return keys[i] },
		args: func(chunk []int, _ count) (*args, error) {
			a := newArgs(len(chunk)+2, 64*len(chunk)+16)
			a.int(int64(max(limit, 0)))
			for _, i := range chunk {
				a.str(keys[i])
			}
			return a, nil
		},
		take: func(chunk []int, r reply) {
			all := list(r.more[0])
			for k, i := range chunk {
				found[i] = parseOrdered(list(at(all, k)))
			}
		},
	}, len(keys))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, found, nil
}

// parseOrdered reads id, due time and traits of each task.
func parseOrdered(flat []any) (tasks []store.Ordered) {
	for i := 0; i+2 < len(flat); i += 3 {
		o := store.Ordered{Entry: store.Entry{ID: parseID(text(flat[i]))}}
		if flat[i+1] == nil {
			o.Held = true
		} else {
			o.Due, _ = parseMillis(text(flat[i+1]))
		}
		o.Traits, _ = record.DecodeTraits([]byte(text(flat[i+2]))) // what is not readable is dead-lettered by Hold
		tasks = append(tasks, o)
	}
	return tasks
}
