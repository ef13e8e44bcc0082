package schedules

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// A schedule, its audience and its calendars lie in different shards, so that no commit decides between the
// put of a schedule and the deletion of what it names. One who puts a schedule that names something new claims
// that in the shard of the schedule first. Then it sees to it that what is named stays, and then it puts the
// schedule in a commit that takes the claim away, and is made only while the claim is there. One who deletes
// marks what is to go, then looks for schedules and takes claims of it away, and then deletes what has
// that mark still.
//
// So a claim is there when the look comes by, and then its commit fails if it comes later; or it comes behind the
// look, and then its owner takes the mark away, or finds it gone. Neither order needs anybody to
// live on: a claim or a mark that a crash leaves behind keeps nobody from anything.

// claim is one of a schedule that is being put.
type claim struct {
	id store.CellID
	at *located
}

// namesNew reports whether a schedule names something that it did not name as it was read: then whoever wants
// to delete that may not have found it.
func (at *located) namesNew(after *schedule.Schedule) bool {
	if after.Audience != nil && (at.cell.Version == 0 || at.Audience == nil || at.Audience.Name != after.Audience.Name) {
		return true
	}
	return slices.ContainsFunc(after.Calendars, func(name string) bool {
		return at.cell.Version == 0 || !slices.Contains(at.Calendars, name)
	})
}

// claim claims what a schedule names, and has the commit that puts it take the claim away.
func (s *Schedules) claim(ctx context.Context, at *located, after *schedule.Schedule, c *store.Commit) (claim, *problem.Error) {
	token := store.NewToken()
	made := claim{schedule.ClaimID(at.Name, hex.EncodeToString(token[:])), at}
	first := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: made.id, Body: c.Puts[0].Body}}}}
	if _, _, err := s.cells.Commit(ctx, at.shard.For(at.topic.Life), nil, []store.Commit{first}); err != nil {
		return made, problem.FromStore(err) // one that was made all the same is as one of a crash
	}
	c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: made.id}, If: 1})
	if after.Audience != nil {
		if err := s.audiences.CheckTarget(ctx, after.Audience.Name, after.Audience.Kind); err != nil {
			return made, problem.FromStore(err)
		}
	}
	return made, s.calendars.stay(ctx, after.Calendars)
}

// dropClaim takes a claim away whose schedule was not put.
func (s *Schedules) dropClaim(ctx context.Context, c claim) {
	_ = takeClaim(context.WithoutCancel(ctx), s.cells, c.at.shard.For(c.at.topic.Life), c.id)
}

func takeClaim(ctx context.Context, cells store.Cells, shard store.Shard, id store.CellID) error {
	_, _, err := cells.Commit(ctx, shard, nil, []store.Commit{{Puts: []store.Put{{Cell: store.Cell{ID: id}, If: store.AnyVersion}}}})
	return err
}
