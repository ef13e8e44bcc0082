package service

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/store"
)

// audienceStore is the role of the store for audiences.
type audienceStore struct {
	cellStore
	shardStore
}

type cellStore interface {
	Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error)
	Server(ctx context.Context, s store.Shard) uint64
	Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error)
	Listed(ctx context.Context, s store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error)
	CellPage(ctx context.Context, s store.Shard, kind byte, cursor string, limit int) (cells []store.Cell, next string, err error)
}

type shardStore interface {
	Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error)
	OpenShard(ctx context.Context, s store.Shard, was store.ShardLife) error
	DropShard(ctx context.Context, s store.Shard) error
}

// audiencesOf returns the use cases of audiences; nil where the store keeps no cells.
func audiencesOf(node *actors.Node, st store.Store, look *lookup) *audiences.Audiences {
	cells := node.Cells()
	if cells == nil {
		return nil
	}
	return audiences.New(audienceStore{cells, st}, audiences.Limits{Recipients: int64(node.Config().Limits.Recipients)}, audiences.Outside{
		Used: (&schedules.Users{Cells: cells, Topics: look.topics}).Find,
		Topics: func(ctx context.Context) ([]store.Topic, error) {
			topics, e := look.topics(ctx, "")
			if e != nil {
				return nil, e
			}
			return topics, nil
		},
		Topic: look.topic,
		Tell: func(ctx context.Context, topic string, shard int) {
			if ref, err := node.Topics().Open(ctx, topic, false); err == nil {
				ref.CellsChanged(shard)
			}
		},
		Random: node.Random,
	})
}

// topic returns a topic as the store has it, or nil.
func (s *lookup) topic(ctx context.Context, name string) (*store.Topic, error) {
	topics, err := s.topics(ctx, name)
	switch {
	case err == nil:
		return &topics[0], nil
	case err.Kind == problem.NotFound:
		return nil, nil
	}
	return nil, err
}
