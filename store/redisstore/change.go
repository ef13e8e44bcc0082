package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
)

// Remove implements store.Writer.
func (s *Store) Remove(ctx context.Context, shard store.Shard, ids []string) (store.Stamp, []store.RemoveResult, error) {
	results := make([]store.RemoveResult, len(ids))
	stamp, err := s.batch(ctx, call{
		what: "remove", lua: s.lua.remove, shard: shard, parts: 1,
		ids:  func(i int) string { return ids[i] },
		args: idArgs(ids, false),
		take: func(chunk []int, r reply) {
			for _, i := range chunk {
				results[i].Status = store.OK
			}
			odd(r.more[0], len(chunk), func(k int, status store.Status, rest []any) {
				results[chunk[k]] = store.RemoveResult{Status: status, State: parsePlace(rest).state(r.now())}
			})
		},
	}, len(ids))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// Requeue implements store.Writer.
func (s *Store) Requeue(ctx context.Context, shard store.Shard, ids []string) (store.Stamp, []store.Status, error) {
	return s.changeDead(ctx, "requeue", s.lua.requeue, shard, ids)
}

// RemoveDead implements store.Writer.
func (s *Store) RemoveDead(ctx context.Context, shard store.Shard, ids []string) (store.Stamp, []store.Status, error) {
	return s.changeDead(ctx, "remove dead", s.lua.removeDead, shard, ids)
}

func (s *Store) changeDead(ctx context.Context, what string, lua *script, shard store.Shard, ids []string) (store.Stamp, []store.Status, error) {
	results := make([]store.Status, len(ids))
	stamp, err := s.batch(ctx, call{
		what: what, lua: lua, shard: shard, parts: 1, pends: lua == s.lua.requeue,
		ids:  func(i int) string { return ids[i] },
		args: idArgs(ids, lua == s.lua.requeue),
		take: func(chunk []int, r reply) { takeStatuses(results, chunk, r) },
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

// Trim implements store.Writer.
func (s *Store) Trim(ctx context.Context, shard store.Shard, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	trimmed := 0
	for trimmed < limit {
		want := min(limit-trimmed, maxItems)
		v, err := s.run(ctx, s.lua.trim, s.keys(shard)[:], []any{want})
		if err != nil {
			return trimmed, writeError("trim", err)
		}
		n := int(number(v))
		trimmed += n
		if n < want {
			break
		}
	}
	return trimmed, nil
}

// Seal implements store.Writer.
func (s *Store) Seal(ctx context.Context, shard store.Shard) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	owner := s.keys(shard)[ownerKey]
	if err := s.change(ctx, owner, redis.NewIntCmd(ctx, "hset", owner, "sealed", 1)); err != nil {
		return writeError("seal", err)
	}
	return nil
}

// DropShard implements store.Writer. Redis frees the memory in the background.
func (s *Store) DropShard(ctx context.Context, shard store.Shard) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	args := []any{"unlink"}
	for _, key := range s.keys(shard)[tasksKey:] {
		args = append(args, key)
	}
	if err := s.change(ctx, s.keys(shard)[tasksKey], redis.NewIntCmd(ctx, args...)); err != nil {
		return writeError("drop shard", err)
	}
	owner := s.keys(shard)[ownerKey]
	if err := s.change(ctx, owner, redis.NewIntCmd(ctx, "hdel", owner, "sealed")); err != nil {
		return writeError("drop shard", err)
	}
	return nil
}
