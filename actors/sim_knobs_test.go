package actors_test

import (
	"math"
	"math/rand/v2"

	"github.com/ddq-io/ddq/actors/knobs"
)

// drawKnobs draws the numbers that size batches and pages, from a source of its own like drawIdle. What happens
// behind the first page happens in a run of some hundred tasks only where pages are small. One run in ten has
// the numbers of a release.
func (s *sim) drawKnobs() (k knobs.Knobs) {
	rng := rand.New(rand.NewPCG(s.seed, 50))
	if rng.IntN(10) == 0 {
		return k
	}
	full := k.WithDefaults()
	if rng.IntN(2) == 0 { // a handful of messages is more than a round reads
		full.RelayPage = 2
	}
	draw := func(most int) int { return simLogUniform(rng, 2*most) }
	k.RelayPage, k.RelayWindow = draw(full.RelayPage), simLogUniform(rand.New(rand.NewPCG(s.seed, 61)), 2*full.RelayWindow)
	draw(16) // knobs that are gone: seeds draw the others as before
	k.EndBatch = draw(full.EndBatch)
	draw(500)
	draw(5_000)
	return knobs.Knobs{
		RelayPage: k.RelayPage, RelayWindow: k.RelayWindow, EndBatch: k.EndBatch,
		HoldBatch: draw(full.HoldBatch), SettleBatch: draw(full.SettleBatch), NextBatch: draw(full.NextBatch),
		LoadPage: draw(full.LoadPage), SweepPage: draw(full.SweepPage),
		PassBatch: draw(full.PassBatch), PassInbox: draw(full.PassInbox), HandBatch: draw(full.HandBatch), HandPages: draw(full.HandPages),
	}
}

// simLogUniform is a number from 1 to most, of each magnitude as often.
func simLogUniform(rng *rand.Rand, most int) int {
	return min(most, int(math.Exp(rng.Float64()*math.Log(float64(most)+1))))
}
