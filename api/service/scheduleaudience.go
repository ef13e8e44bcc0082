package service

import (
	"context"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/store"
)

// audienceStore is the role of the store for audiences.
type audienceStore struct {
	cellStore
	shardStore
}

type cellStore interface {
	Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error)
	Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error)
	Listed(ctx context.Context, s store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error)
}

type shardStore interface {
	Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error)
	OpenShard(ctx context.Context, s store.Shard, was store.ShardLife) error
	DropShard(ctx context.Context, s store.Shard) error
}

// audiencesOf returns the use cases of audiences; nil where the store keeps no cells.
func audiencesOf(cells store.Cells, st store.Store) *audiences.Audiences {
	if cells == nil {
		return nil
	}
	return audiences.New(audienceStore{cells, st}, audiences.Limits{})
}

// maxSpreadFrom is from how many recipients on they are spread at most.
const maxSpreadFrom = 1_000_000

// checkAudience checks the bounds of what a schedule says of its audience.
func (n *NewSchedule) checkAudience() *problem.Error {
	a := n.Audience
	if a == nil {
		return nil
	}
	switch {
	case a.Window > audience.MaxWindow:
		return outOfRange("audience.window_ms", 0, audience.MaxWindow.Milliseconds())
	case a.Grain > a.Window:
		return outOfRange("audience.grain_ms", 0, a.Window.Milliseconds())
	case a.SpreadFrom < 0 || a.SpreadFrom > maxSpreadFrom:
		return outOfRange("audience.spread_from", 0, maxSpreadFrom)
	case n.Template.Slack > 0:
		return problem.BadField("task.slack", "BAD_POLICY", "task.slack is not for audiences: audience.window_ms spreads their tasks")
	}
	return nil
}

// knowsAudience refuses a schedule of an audience, or of a kind, that does not exist.
func (s *Schedules) knowsAudience(ctx context.Context, n *NewSchedule) *problem.Error {
	if n.Audience == nil {
		return nil
	}
	return problem.FromStore(s.audiences.CheckTarget(ctx, n.Audience.Name, n.Audience.Kind))
}
