package actors_test

import (
	"math/rand/v2"
	"time"
)

// White noise masks bugs: what one verb piles up another takes away at once. So half of the runs have phases, in each
// of which some verbs come often and some not at all.

// simVerb is what producers, users and workers do.
type simVerb int

const (
	simProduces simVerb = iota
	simMeddles
	simEnqueuesWithAcks
	simFails   // nacks, releases and holds that run out
	simSettles // at all: with weight 0 workers keep what they have until it is taken back
	simVerbs
)

// simPhase is a time with a weight for each verb.
type simPhase struct {
	until   time.Duration // from the start
	weights [simVerbs]float64
}

// drawPhases draws the phases of a run, from a source of its own like drawIdle; none: each weight is 1.
func (s *sim) drawPhases(p *simPlan) (all []simPhase) {
	rng := rand.New(rand.NewPCG(s.seed, 95))
	if rng.IntN(2) == 0 {
		return nil
	}
	n := 4 + rng.IntN(9)
	for i := range n {
		phase := simPhase{until: p.active * time.Duration(i+1) / time.Duration(n)}
		for verb := range phase.weights {
			phase.weights[verb] = []float64{0, 0.3, 1, 3}[rng.IntN(4)]
		}
		if i == 0 { // something is to be there
			phase.weights[simProduces] = max(1, phase.weights[simProduces])
		}
		all = append(all, phase)
	}
	return all
}

// weight is that of a verb now.
func (s *sim) weight(verb simVerb) float64 {
	now := time.Since(s.start)
	for i := range s.plan.phases {
		if p := &s.plan.phases[i]; now < p.until {
			return p.weights[verb]
		}
	}
	return 1
}

// does draws whether a verb comes that has a chance where its weight is 1.
func (s *sim) does(verb simVerb, chance float64) bool { return s.chance(min(1, chance*s.weight(verb))) }

// aimed is when somebody meddles with a task: half of the time at the moment at which it is due, or a little off.
func (s *sim) aimed(t simTask) time.Duration {
	any := s.between(0, 5*time.Second)
	if off := s.between(-3*time.Millisecond, 3*time.Millisecond); s.chance(0.5) {
		return max(0, t.when.Delay+off)
	}
	return any
}
