package watches

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/position"
	"github.com/ddq-io/ddq/store"
)

// logs reads the logs of changes that topics keep.
type logs struct {
	node  *actors.Node
	store store.Log
}

// changes reads logs, and once more after an answer that was lost.
func (s *logs) changes(ctx context.Context, reads []store.LogRead) (pages []store.LogPage, err error) {
	if len(reads) == 0 {
		return nil, nil
	}
	for range 2 {
		if pages, err = s.store.Changes(ctx, reads); !errors.Is(err, store.ErrUnknown) {
			break
		}
	}
	return pages, err
}

// servers says which servers the logs of shards are read from, as one number: another one may not have all changes.
func (s *logs) servers(ctx context.Context, shards []store.Shard) uint64 {
	h := fnv.New64a()
	for _, shard := range shards {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, s.node.Cells().Server(ctx, shard)))
	}
	return h.Sum64()
}

// verify reports whether the logs still have what was read of them, as far as they keep it, and when that was made.
func (s *logs) verify(ctx context.Context, topic string, at position.Set) *problem.Error {
	var reads []store.LogRead
	for _, shard := range at.Shards(topic) {
		if last := at[shard.N].Position; last > 0 {
			reads = append(reads, store.LogRead{Shard: shard, After: last - 1, Limit: 1})
		}
	}
	pages, err := s.changes(ctx, reads)
	if err != nil {
		return problem.FromStore(err)
	}
	for i, page := range pages {
		n := reads[i].Shard.N
		if page.Last < at[n].Position {
			return errCursorExpired()
		}
		if len(page.Changes) == 0 { // not kept any more
			continue
		}
		is := position.Behind(&page.Changes[0])
		if was := at[n].Made; was != 0 && was != is.Made {
			return errCursorExpired()
		}
		at[n] = is
	}
	return nil
}

func errNotWatched(topic string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "NOT_WATCHED", Field: "topic",
		Message: "topic " + topic + " keeps no log of changes: set its policy's watch_retention_ms (ddq topic set " + topic + " --watch-retention 1h)"}
}

func errCursorExpired() *problem.Error {
	return &problem.Error{Kind: problem.OutOfRange, Reason: "CURSOR_EXPIRED", Field: "cursor",
		Message: "changes behind the cursor are not kept any more, or its own was lost in a failover of the store: begin anew, and look at the tasks themselves"}
}
