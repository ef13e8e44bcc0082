package actors_test

import (
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/store"
)

// A run with schedules, workflows or an audience may give their topic other shards, under traffic and faults. What
// lies in cells moves to them, and is in one shard at a time, or on its way; tasks stay where they are.
// Each occurrence has its run or a reason all the same, and each try of a step its task.

// drawReshards draws how often the topic gets other shards, from a source of its own like drawIdle. Where the
// store has two clocks a schedule would go from one to the other.
func (s *sim) drawReshards(p *simPlan) int {
	rng := rand.New(rand.NewPCG(s.seed, 10))
	if p.schedules+p.workflows+p.audience == 0 || p.ahead != 0 || rng.IntN(2) == 0 {
		return 0
	}
	return 1 + rng.IntN(2)
}

// reshard has some node give the topic another number of shards.
func (s *sim) reshard() {
	n := s.anyNode()
	if n == nil {
		return
	}
	shards := 1 + s.rng.IntN(5)
	s.log("%s is asked for %d shards", n.key, shards)
	s.excuse(s.plan.callTimeout + s.plan.housekeepEvery + s.plan.lease)
	s.misled()
	s.spawn(n, func() error {
		ctx, cancel := n.timeout()
		defer cancel()
		_, err := n.use.Topics.Reshard(ctx, simTopic, shards)
		return err
	}, func(err error) { s.log("%s: %d shards: %v", n.key, shards, err) })
}

// home is the shard of the first topic in which a cell is, or was last; false when it is in none, as
// it is on its way.
func (s *sim) home(id store.CellID, last store.Shard) (store.Shard, bool) {
	if s.plan.reshards == 0 {
		return last, true
	}
	there := false
	for _, sh := range s.shardsOf(simTopic) {
		cells, err := s.on(sh).Cells(simContext, sh, []store.CellID{id})
		if err != nil {
			panic(err) // memstore fails only when it is closed
		}
		if cells[0].Version == 0 {
			continue
		}
		if there {
			s.broken("moved: %s is in %v and in %v", id.Key(), last, sh)
		}
		last, there = sh, true
	}
	return last, there
}

// stays reports whether what lies in a shard of the first topic need not move to another one.
func (s *sim) stays(sh store.Shard) bool {
	topic, err := s.mem.GetTopic(simContext, simTopic)
	if err != nil {
		panic(err) // nobody deletes it in runs that have schedules
	}
	return sh.N >= topic.Active().First
}

// once looks whether what a commit has put is in no other shard.
func (s *sim) once(c *store.Commit) {
	for _, put := range c.Puts {
		if s.plan.reshards > 0 && len(put.Body) > 0 && (s.schedules[put.ID] != nil || put.ID.Kind() == store.CellWorkflow && s.flows[put.ID.Key()] != nil) {
			s.home(put.ID, store.Shard{})
		}
	}
}

// isLive reports whether a task is in some shard, and not over.
func (s *sim) isLive(id string) (store.State, bool) {
	shards := []store.Shard{s.shardOf(id)}
	if s.plan.reshards > 0 {
		shards = s.shardsOf(shards[0].Topic)
	}
	for _, sh := range shards {
		_, found, err := s.on(sh).Get(simContext, sh, []string{id})
		if err != nil {
			panic(err) // memstore fails only when it is closed
		}
		if found[0].State.Live() {
			return found[0].State, true
		}
	}
	return 0, false
}

// planReshards plans when the topic is resharded.
func (s *sim) planReshards() {
	for range s.plan.reshards {
		s.at(s.start.Add(s.between(10*time.Second, s.plan.active-10*time.Second)), s.reshard)
	}
}
