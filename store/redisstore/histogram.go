package redisstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/redisstore/conn"
)

// Histogram implements store.Reader.
func (s *reader) Histogram(ctx context.Context, shard store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	return s.histogram(ctx, "histogram", s.keys(shard).pick(ownerKey, tasksKey), bounds)
}

// histogram counts the members of an ordered set by time.
func (s *core) histogram(ctx context.Context, what string, keys []string, bounds []store.Millis) (store.Stamp, []int64, error) {
	if err := s.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	a := newArgs(len(bounds), 16*len(bounds))
	for _, b := range bounds {
		a.int(int64(b))
	}
	v, err := s.conn.Run(ctx, s.lua.histogram, keys, a.values())
	if err != nil {
		return store.Stamp{}, nil, conn.ReadError(what, err)
	}
	r, err := parseReply(v, 1)
	if err != nil {
		return store.Stamp{}, nil, conn.ReadError(what, err)
	}
	counts := make([]int64, len(bounds)+1)
	for i, n := range list(r.more[0]) {
		counts[i] = number(n)
	}
	return r.Stamp, counts, nil
}
