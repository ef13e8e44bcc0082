package redisstore

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Cancel implements store.Writer.
func (s *writer) Cancel(ctx context.Context, shard store.Shard, ids []string) (store.Stamp, []store.CancelResult, error) {
	results := make([]store.CancelResult, len(ids))
	stamp, err := s.batch(ctx, call{
		what: "cancel", lua: s.lua.cancel, shard: shard, parts: 2,
		ids:  func(i int) string { return ids[i] },
		args: idArgs(ids, false),
		take: func(chunk []int, r reply) {
			tokens := list(r.more[0])
			for k, i := range chunk {
				results[i] = store.CancelResult{Status: store.OK}
				copy(results[i].Token[:], text(at(tokens, k)))
			}
			odd(r.more[1], len(chunk), func(k int, status store.Status, rest []any) {
				results[chunk[k]] = store.CancelResult{Status: status}
				if status == store.WrongState {
					results[chunk[k]].State = parsePlace(rest).state(r.now())
				}
			})
		},
	}, len(ids))
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}
