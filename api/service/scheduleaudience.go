package service

import (
	"context"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/audiences"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
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
func audiencesOf(cells store.Cells, st store.Store, look *lookup) *audiences.Audiences {
	if cells == nil {
		return nil
	}
	return audiences.New(audienceStore{cells, st}, audiences.Limits{}, (&audienceUse{cells, look}).find)
}

// audienceUse looks through all schedules for those that have an audience.
type audienceUse struct {
	cells store.Cells
	look  *lookup
}

// usePage is how many schedules are read at a time.
const usePage = 500

// find returns a schedule that has an audience, with its topic; nothing when none does.
func (u *audienceUse) find(ctx context.Context, name string) (string, error) {
	topics, e := u.look.topics(ctx, "")
	if e != nil {
		return "", e
	}
	for i := range topics {
		for _, shard := range place.Shards(&topics[i]) {
			found, err := u.findIn(ctx, shard, name)
			if found != "" || err != nil {
				return found, err
			}
		}
	}
	return "", nil
}

func (u *audienceUse) findIn(ctx context.Context, shard store.Shard, name string) (string, error) {
	for cursor := ""; ; {
		cells, next, err := u.cells.CellPage(ctx, shard, store.CellSchedule, cursor, usePage)
		if err != nil {
			return "", err
		}
		for _, c := range cells {
			s, err := schedule.FromCell(c)
			if err == nil && s.Audience != nil && s.Audience.Name == name {
				return shard.Topic + "/" + s.Name, nil
			}
		}
		if cursor = next; cursor == "" {
			return "", nil
		}
	}
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
