package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// limitKey is where something of a limit lies: what is of one part shares a hash tag.
func (s *core) limitKey(noun string, k store.LimitKey) string {
	return "ddq:{limit:" + strconv.Itoa(s.limitPart(k)) + "}:" + noun + ":" + k.Topic + ":" + k.Key
}

// limitPart is the part of a limit, from 0 to store.LimitParts - 1.
func (s *core) limitPart(k store.LimitKey) int {
	if s.byTopic {
		k.Key = ""
	}
	return k.Part()
}

// limitsKey says how limits are named: "2" is by topic, nothing by topic and key.
const (
	limitsKey     = "ddq:limits"
	limitsByTopic = "2"
)

// nameLimits finds out how limits are named. By topic are those of a Cluster that had no topic when a version that
// can began there: one script takes all of a topic then. Elsewhere a script may have keys of any slots, and the
// names of before serve nodes of before, too.
func (s *core) nameLimits(ctx context.Context) error {
	if !s.conn.IsCluster() {
		return nil
	}
	topics := redis.NewIntCmd(ctx, "exists", topicsKey)
	if err := s.conn.Send(ctx, topicsKey, topics); err != nil {
		return conn.ReadError("name limits", err)
	}
	if topics.Val() == 0 {
		if err := s.conn.Change(ctx, limitsKey, redis.NewBoolCmd(ctx, "set", limitsKey, limitsByTopic, "nx")); err != nil && !errors.Is(err, redis.Nil) {
			return conn.WriteError("name limits", err)
		}
	}
	named := redis.NewStringCmd(ctx, "get", limitsKey)
	if err := s.conn.Send(ctx, limitsKey, named); err != nil && !errors.Is(err, redis.Nil) {
		return conn.ReadError("name limits", err)
	}
	s.byTopic = named.Val() == limitsByTopic
	return nil
}

// limitCall is one call about a batch of items of limits.
type limitCall struct {
	what string
	lua  *conn.Script
	wait bool // for replicas
	key  func(i int) store.LimitKey
	keys func(i int) []string
	size func(i int) int // holders and the like
	args func(a *args, i int)
	take func(group []int, v any) error
}

// all runs a script over n items: one script for as many as it takes, in a cluster
// for those of one part.
func (s *limits) all(ctx context.Context, c limitCall, n int) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	groups := s.groups(c, n)
	failed := make([]error, len(groups))
	var wg sync.WaitGroup
	for g, group := range groups[min(1, len(groups)):] {
		wg.Go(func() { failed[g+1] = s.run(ctx, c, group) })
	}
	if len(groups) > 0 {
		failed[0] = s.run(ctx, c, groups[0])
	}
	wg.Wait()
	err := errors.Join(failed...)
	if err != nil && len(groups) > 1 {
		return conn.AfterPart(err)
	}
	return err
}

// limitGroups puts together what one script can do. Items of one key stay in order.
func (s *limits) groups(c limitCall, n int) (groups [][]int) {
	var size [store.LimitParts]int
	var open [store.LimitParts]int // index in groups + 1
	for i := range n {
		part := 0
		if s.conn.IsCluster() {
			part = s.limitPart(c.key(i))
		}
		if open[part] == 0 || size[part]+c.size(i) > maxItems {
			groups = append(groups, nil)
			open[part], size[part] = len(groups), 0
		}
		g := open[part] - 1
		groups[g] = append(groups[g], i)
		size[part] += c.size(i)
	}
	return groups
}

func (s *limits) run(ctx context.Context, c limitCall, group []int) error {
	var keys []string
	a := newArgs(8*len(group), 64*len(group))
	for _, i := range group {
		keys = append(keys, c.keys(i)...)
		c.args(a, i)
	}
	v, err := s.conn.RunAndWait(ctx, c.lua, c.wait, keys, a.values())
	if err != nil {
		return conn.WriteError(c.what, err)
	}
	if err := c.take(group, v); err != nil {
		return conn.WriteError(c.what, fmt.Errorf("%w: %.200v", err, v))
	}
	return nil
}

// Reserve implements store.Limits. Replicas are not waited for: a failover may give
// the tokens of its last moments twice.
func (s *limits) Reserve(ctx context.Context, asked []store.Reservation) ([]store.Tokens, error) {
	got := make([]store.Tokens, len(asked))
	err := s.all(ctx, limitCall{
		what: "reserve", lua: s.lua.reserve,
		key: func(i int) store.LimitKey { return asked[i].Key },
		keys: func(i int) []string {
			return []string{s.limitKey("rate", asked[i].Key), s.limitKey("line", asked[i].Key)}
		},
		size: func(int) int { return 1 },
		args: func(a *args, i int) {
			q := &asked[i]
			a.int(int64(q.Rate.Kind))
			a.int(int64(q.Rate.Count))
			a.int(q.Rate.Period.Microseconds())
			a.int(int64(q.Rate.Most()))
			a.int(int64(q.N))
			a.int(q.Ahead.Microseconds())
			a.int(int64(bit(q.Whole)))
			a.int(min(q.Life, store.MaxTokenLife).Microseconds())
		},
		take: func(group []int, v any) error {
			all := list(v)
			if len(all) != 1+2*len(group) {
				return conn.ErrReply
			}
			now := time.UnixMicro(number(all[0])).UTC()
			for k, i := range group {
				got[i] = store.Tokens{N: int(number(all[1+2*k])), Now: now, First: time.UnixMicro(number(all[2+2*k])).UTC()}
			}
			return nil
		},
	}, len(asked))
	if err != nil {
		return nil, err
	}
	return got, nil
}

// capKeys are the keys of a cap.
func (s *core) capKeys(k store.LimitKey) []string {
	return []string{s.limitKey("held", k), s.limitKey("waiting", k)}
}

// Acquire implements store.Limits.
func (s *limits) Acquire(ctx context.Context, asked []store.Acquire) ([]store.Acquired, error) {
	got := make([]store.Acquired, len(asked))
	err := s.all(ctx, limitCall{
		what: "acquire", lua: s.lua.acquire, wait: true,
		key:  func(i int) store.LimitKey { return asked[i].Key },
		keys: func(i int) []string { return s.capKeys(asked[i].Key) },
		size: func(i int) int { return 1 + len(asked[i].Holders) },
		args: func(a *args, i int) {
			q := &asked[i]
			a.int(int64(q.Max))
			a.str(q.Node)
			a.int(int64(q.Until))
			a.int(int64(len(q.Holders)))
			for _, h := range q.Holders {
				a.tok(h)
			}
		},
		take: func(group []int, v any) error {
			all := list(v)
			if len(all) != 3*len(group) {
				return conn.ErrReply
			}
			for k, i := range group {
				got[i] = store.Acquired{N: int(number(all[3*k])), InUse: int(number(all[3*k+1])), Next: store.Millis(number(all[3*k+2]))}
			}
			return nil
		},
	}, len(asked))
	if err != nil {
		return nil, err
	}
	return got, nil
}

// permitGroups are the indices of permits of one key each, in the order of the first of
// them, as many as one script takes of a key.
func permitGroups(permits []store.Permit) (groups [][]int) {
	open := make(map[store.LimitKey]int)
	for i, p := range permits {
		g, found := open[p.Key]
		if !found || len(groups[g]) == maxItems {
			g = len(groups)
			open[p.Key] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// Move implements store.Limits.
func (s *limits) Move(ctx context.Context, permits []store.Permit) error {
	byKey := permitGroups(permits)
	key := func(i int) store.LimitKey { return permits[byKey[i][0]].Key }
	return s.all(ctx, limitCall{
		what: "move permits", lua: s.lua.movePermits, wait: true,
		key:  key,
		keys: func(i int) []string { return []string{s.limitKey("held", key(i))} },
		size: func(i int) int { return len(byKey[i]) },
		args: func(a *args, i int) {
			a.int(int64(len(byKey[i])))
			for _, p := range byKey[i] {
				a.int(int64(permits[p].Until))
				a.tok(permits[p].Holder)
			}
		},
		take: func([]int, any) error { return nil },
	}, len(byKey))
}

// Free implements store.Limits. Replicas are not waited for: a permit that a failover
// brings back ends by itself.
func (s *limits) Free(ctx context.Context, permits []store.Permit) ([][]string, error) {
	waiting := make([][]string, len(permits))
	byKey := permitGroups(permits)
	key := func(i int) store.LimitKey { return permits[byKey[i][0]].Key }
	err := s.all(ctx, limitCall{
		what: "free permits", lua: s.lua.free,
		key:  key,
		keys: func(i int) []string { return s.capKeys(key(i)) },
		size: func(i int) int { return len(byKey[i]) },
		args: func(a *args, i int) {
			a.int(int64(len(byKey[i])))
			for _, p := range byKey[i] {
				a.tok(permits[p].Holder)
			}
		},
		take: func(group []int, v any) error {
			all := list(v)
			if len(all) != len(group) {
				return conn.ErrReply
			}
			for k, i := range group {
				nodes := nodesOf(all[k])
				for _, p := range byKey[i] {
					waiting[p] = nodes
				}
			}
			return nil
		},
	}, len(byKey))
	if err != nil {
		return nil, err
	}
	return waiting, nil
}

func nodesOf(v any) []string {
	if len(list(v)) == 0 {
		return nil
	}
	return texts(v)
}
