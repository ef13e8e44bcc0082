package redisstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// Remove implements store.Writer.
func (s *writer) Remove(ctx context.Context, shard store.Shard, removals []store.Removal) (store.Stamp, []store.RemoveResult, error) {
	return s.changePending(ctx, call{
		what: "remove", lua: s.lua.remove, shard: shard,
		ids: func(i int) string { return removals[i].ID },
		args: func(chunk []int, _ count) (*args, error) {
			a := newArgs(2*len(chunk)+2, 48*len(chunk))
			a.int(int64(len(chunk)))
			for _, i := range chunk {
				a.id(removals[i].ID)
			}
			for _, i := range chunk {
				a.int(removals[i].IfVersion)
			}
			return a, nil
		},
	}, len(removals), nil)
}

// changePending runs a script that changes pending tasks, or makes tasks pending: due
// says when they are due then, nil that they are gone.
func (s *writer) changePending(ctx context.Context, c call, n int, due func(i int, r reply) store.Millis) (store.Stamp, []store.RemoveResult, error) {
	results := make([]store.RemoveResult, n)
	c.parts = 1 + bit(c.pends)
	c.take = func(chunk []int, r reply) {
		for k, i := range chunk {
			results[i].Status = store.OK
			if due != nil {
				results[i].Due, results[i].Traits = due(i, r), traitsAt(list(r.more[0]), k)
			}
		}
		odd(r.more[len(r.more)-1], len(chunk), func(k int, status store.Status, rest []any) {
			results[chunk[k]] = store.RemoveResult{Status: status}
			if status != store.Stale {
				results[chunk[k]].State = parsePlace(rest).state(r.now())
			}
		})
	}
	c.left = func(i int) bool { return results[i].Status == store.LeftOut }
	stamp, err := s.batch(ctx, c, n)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// Requeue implements store.Writer.
func (s *writer) Requeue(ctx context.Context, shard store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	return s.changePending(ctx, call{
		what: "requeue", lua: s.lua.requeue, shard: shard, pends: true,
		ids:  func(i int) string { return ids[i] },
		args: idArgs(ids, true),
	}, len(ids), func(_ int, r reply) store.Millis { return r.now() })
}

// RemoveDead implements store.Writer.
func (s *writer) RemoveDead(ctx context.Context, shard store.Shard, ids []string) (store.Stamp, []store.Status, error) {
	results := make([]store.Status, len(ids))
	stamp, err := s.batch(ctx, call{
		what: "remove dead", lua: s.lua.removeDead, shard: shard, parts: 1,
		ids:  func(i int) string { return ids[i] },
		args: idArgs(ids, false),
		take: func(chunk []int, r reply) { takeStatuses(results, chunk, r) },
		left: func(i int) bool { return results[i] == store.LeftOut },
	}, len(ids))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// idArgs encodes chunks of nothing but ids, with the count in front or not.
func idArgs(ids []string, pends bool) func(chunk []int, n count) (*args, error) {
	return func(chunk []int, n count) (*args, error) {
		a := newArgs(len(chunk)+1, 40*len(chunk))
		if pends {
			a.int(int64(n))
		}
		for _, i := range chunk {
			a.id(ids[i])
		}
		return a, nil
	}
}

// Trim implements store.Retention.
func (s *retention) Trim(ctx context.Context, shard store.Shard, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	return trim("trim", limit, func(want int) (any, error) {
		return s.conn.Run(ctx, s.lua.trim, s.keys(shard).of(s.lua.trim), []any{want})
	})
}

// trim runs a script that deletes a part of what there is, and says how much, until there
// is no more or the limit is reached. A negative number is of a part that stopped before, to be short.
func trim(what string, limit int, part func(want int) (any, error)) (trimmed int, err error) {
	for trimmed < limit {
		want := min(limit-trimmed, maxItems)
		v, err := part(want)
		if err != nil {
			return trimmed, conn.WriteError(what, err)
		}
		n := int(number(v))
		more := n < 0
		if more {
			n = -n
		}
		if trimmed += n; n < want && !more {
			break
		}
	}
	return trimmed, nil
}
