package redisstore

import (
	"context"
	"strconv"

	"github.com/ddq-io/ddq/store"
)

// DeadWindow implements store.Reader.
func (s *reader) DeadWindow(ctx context.Context, shard store.Shard, w store.WindowQuery) ([]store.Entry, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	keys := s.keys(shard)
	var entries []store.Entry
	after := w.After
	for len(entries) < w.Limit {
		want := min(w.Limit-len(entries), maxItems)
		_, page, err := s.page(ctx, keys.pick(ownerKey, dlqKey, traitsKey), after, strconv.FormatInt(int64(w.To), 10), want)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page...)
		if len(page) < want {
			break
		}
		after = page[len(page)-1]
	}
	return entries, nil
}

// TrimDead implements store.Retention.
func (s *retention) TrimDead(ctx context.Context, shard store.Shard, upTo store.Entry, limit int) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	return trim("trim dead", limit, func(want int) (any, error) {
		a := newArgs(3, 64)
		a.int(int64(upTo.Due))
		a.id(upTo.ID)
		a.int(int64(want))
		return s.conn.Run(ctx, s.lua.trimDead, s.keys(shard).of(s.lua.trimDead), a.values())
	})
}
