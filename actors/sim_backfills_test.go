package actors_test

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/store"
)

// Users have times of before made once more, also of schedules that are paused meanwhile. Whatever has something to
// do goes on with it: a backfill, and whoever has a time to wake.

// simStuck is how long what could go on may take to do so.
const simStuck = 20 * time.Second

// backfill has a user ask a node for a range of before, and at times pause the schedule just then.
func (s *sim) backfill(ctx context.Context, n *simNode, name, request string, since time.Duration, overlap schedule.Overlap) error {
	now := s.now(s.schedules[schedule.CellID(name)].shard)
	_, err := n.use.Schedules.Backfill(ctx, schedules.Backfill{
		Topic: simTopic, Name: name, ID: request, From: now.Add(-since), To: now, Overlap: overlap,
	})
	return err
}

// lookSchedules looks for backfills that could go on, and do not.
func (s *sim) lookSchedules(was map[string]time.Time) {
	for i := range s.plan.schedules {
		id := schedule.CellID(simScheduleName(i))
		one, _ := s.readSchedule(id)
		if one == nil || len(one.Backfills) == 0 {
			continue
		}
		s.sometimes("a backfill goes on")
		if one.Phase == schedule.Paused {
			s.sometimes("a backfill goes on in a pause")
			if len(one.Waiting) > 0 {
				s.sometimes("a backfill goes on in a pause, and a time waits")
			}
		}
		sh := s.schedules[id].shard
		if len(one.Open) == 0 && s.ownerOf(sh) != nil && s.faults.full[sh.For(0)] == 0 && s.stays(sh) {
			s.uncaused(was, simStuck, "the backfill %s of %s is stuck", one.Backfills[0].ID, one.Name)
		}
	}
}

// lookWakes looks for entities whose time to wake has passed. Of what users of the simulation change, nobody tells their
// owners: those look at the seqs of shards, and seldom when nobody uses the topic.
func (s *sim) lookWakes(sh store.Shard, was map[string]time.Time) {
	_, late, err := s.on(sh).Wakes(simContext, sh, store.WakeQuery{To: s.now(sh).Add(-simLook), Limit: 10})
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	for _, w := range late {
		s.uncaused(was, simStuck+time.Duration(2*s.plan.discoverTurns+1)*s.plan.seqEvery, "%s was to wake at %v, in %v", w.ID.Key(), w.At.Time(), sh)
	}
}
