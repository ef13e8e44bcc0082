package shard

import (
	"github.com/ddq-io/ddq/store"
)

// What the checks of a simulation read of a shard. No actor runs meanwhile.

// Shard names the shard.
func (s *Actor) Shard() store.Shard { return s.id }

// Fence is what the shard may hold tasks under, and whether it may.
func (s *Actor) Fence() (f store.Fence, owned bool) { return s.claimer.fence(), s.claimer.owned() }

// Calls are how many store calls of each kind are in flight.
func (s *Actor) Calls() []int {
	return []int{
		s.adder.adds.InFlight, s.adder.holdNews.InFlight, s.adder.keyed.InFlight, s.holder.batches.InFlight,
		s.settler.acks.InFlight, s.settler.nacks.InFlight, s.settler.extends.InFlight, s.settler.checkpoints.InFlight, s.recoverer.batches.InFlight,
	}
}

// Assigning reports whether tasks have subscriptions, and it is not known whether they are
// held.
func (s *Actor) Assigning() bool { return !s.adder.idle() || !s.holder.idle() }

// CountHolds adds to the number of holds of each subscription.
func (s *Actor) CountHolds(of map[int64]int) {
	for _, h := range s.holds.table.ByID {
		if h.Sub != nil {
			of[h.Sub.HolderID()]++
		}
	}
}

// Fault says what is in two places, or in none; empty when nothing is.
func (s *Actor) Fault() string {
	for id := range s.tasks.AllWithTopic() {
		if s.loader.wheel.Has(id) {
			return id + " is ready, and due later"
		}
	}
	if !s.settler.extends.Idle() || !s.holder.idle() {
		return ""
	}
	for id, permit := range s.holds.permits {
		if s.holds.get(id, permit.Holder) == nil {
			return id + " has a permit and no hold"
		}
	}
	return ""
}
