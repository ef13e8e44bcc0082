package actors_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// Some workflows time out, also while users have paused the deliveries of their topics for longer than that: no worker
// comes for what is made. They end all the same, for nothing but attempts that run is waited for.

// simWithdrawn is how long it may take until what no worker has is withdrawn, see package workflow.
const simWithdrawn = time.Minute + 15*time.Second

// timeOut draws whether a workflow times out, from a source of its own like drawIdle.
func (s *sim) timeOut(i int, d *graph.Definition) {
	rng := rand.New(rand.NewPCG(s.seed, 70+uint64(i)))
	if rng.IntN(3) > 0 {
		return
	}
	d.Timeout = simBetween(rng, 5*time.Second, time.Minute)
	topics := []string{simTopic}
	if s.plan.away > 0 && rng.IntN(2) == 0 {
		topics = append(topics, simAway)
	}
	from, lasts := simBetween(rng, time.Second, s.plan.active/2), simBetween(rng, 100*time.Second, 150*time.Second)
	for _, topic := range topics {
		s.after(from, func() { s.pauseTopic(topic, false, lasts) })
	}
}

// lookFlows looks for workflows that timed out, and wait for a worker.
func (s *sim) lookFlows(was map[string]time.Time) {
	for i := range s.plan.workflows {
		id := fmt.Sprintf("flow%d", i)
		flow := s.flows[id]
		if flow == nil || flow.timeout == 0 || flow.paused || s.now(flow.shard) < flow.since.Add(flow.timeout) || !s.stateOfFlow(id).Open() {
			continue
		}
		s.sometimes("a workflow has timed out, and is open")
		s.binds("workflow timeout")
		if s.now(flow.shard) < flow.since.Add(flow.timeout+simWithdrawn) || !s.allOwned() {
			continue
		}
		if waits := s.awaited(flow); !waits {
			s.uncaused(was, simStuck, "%s has timed out, and waits for nobody who is at work", id)
		}
	}
}

// awaited reports whether a task of a workflow runs, or undoes something.
func (s *sim) awaited(flow *simFlow) bool {
	for try, id := range flow.tasks {
		if state, live := s.isLive(id); live && (state == store.StateRunning || strings.HasSuffix(try, "undo true")) {
			return true
		}
	}
	return false
}

// allOwned reports whether each shard has an owner who is awake, and takes what is new.
func (s *sim) allOwned() bool {
	for _, sh := range s.shards() {
		if s.ownerOf(sh) == nil || s.faults.full[sh.For(0)] > 0 {
			return false
		}
	}
	return true
}
