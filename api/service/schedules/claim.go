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
	*Schedules
	id   store.CellID
	at   *located
	body []byte // the schedule
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

// newClaim returns a claim of a schedule that a commit puts, and has the commit take it away.
func newClaim(s *Schedules, at *located, c *store.Commit) claim {
	token := store.NewToken()
	made := claim{s, schedule.ClaimID(at.Name, hex.EncodeToString(token[:])), at, c.Puts[0].Body}
	c.Puts = append(c.Puts, store.Put{Cell: store.Cell{ID: made.id}, If: 1})
	return made
}

// make claims what a schedule names.
func (c *claim) make(ctx context.Context, after *schedule.Schedule) *problem.Error {
	first := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: c.id, Body: c.body}}}}
	if _, _, err := c.cells.Commit(ctx, c.at.shard.For(c.at.topic.Life), nil, []store.Commit{first}); err != nil {
		return problem.FromStore(err) // one that was made all the same is as one of a crash
	}
	if after.Audience != nil {
		if err := c.audiences.CheckTarget(ctx, after.Audience.Name, after.Audience.Kind); err != nil {
			return problem.FromStore(err)
		}
	}
	return c.calendars.stay(ctx, after.Calendars)
}

// drop takes a claim away whose schedule was not put.
func (c *claim) drop(ctx context.Context) {
	_ = takeClaim(context.WithoutCancel(ctx), c.cells, c.at.shard.For(c.at.topic.Life), c.id)
}

func takeClaim(ctx context.Context, cells store.Cells, shard store.Shard, id store.CellID) error {
	_, _, err := cells.Commit(ctx, shard, nil, []store.Commit{{Puts: []store.Put{{Cell: store.Cell{ID: id}, If: store.AnyVersion}}}})
	return err
}
