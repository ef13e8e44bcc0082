package actors

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/subscription"
)

// What the checks of a simulation read of the actors, all of it. Nothing runs meanwhile.

// TopicPeek is a topic's actor.
type TopicPeek struct{ t *topicActor }

// ShardPeek is a shard's.
type ShardPeek = *shard.Actor

func PeekTopic(a actor.Actor) (TopicPeek, bool) {
	t, ok := a.(*topicActor)
	return TopicPeek{t}, ok
}

func PeekShard(a actor.Actor) (ShardPeek, bool) {
	s, ok := a.(*shard.Actor)
	return s, ok
}

// SubPeek is a subscription as the core has it.
type SubPeek struct {
	ID                    int64
	Max, Credit, InFlight int
	OnDemand              bool
	Assigned, Unsent      int64 // of its byte budget
	Out                   subscription.Outbox
}

func (p TopicPeek) Name() string { return p.t.topic.Name }

func (p TopicPeek) Subs() (all []SubPeek) {
	for _, s := range p.t.core.Accounts() {
		sub := p.t.subscribers[s.ID]
		all = append(all, SubPeek{s.ID, s.Max, s.Credit, s.InFlight, sub.Options.OnDemand, sub.Budget.Assigned.Load(), sub.Budget.Unsent.Load(), sub.Out})
	}
	return all
}

// Room is what this node's workers may be given.
func (p TopicPeek) Room() int { return p.t.core.Room() }

// Asking reports whether a call about limits is in flight, or permits wait for one.
func (p TopicPeek) Asking() bool { return p.t.core.Owes() }

// Calls are how many calls of each kind are in flight.
func (p TopicPeek) Calls() []int {
	if p.t.core.Taking() {
		return []int{1}
	}
	return []int{0}
}

// Unheld is how many tasks the topic takes to be neither held nor refunded.
func (p TopicPeek) Unheld() int { return p.t.core.Unheld() }

// Fault says what does not add up in the core, empty when all does.
func (p TopicPeek) Fault() string { return p.t.core.Check() }

// Linked is what other nodes have of a subscription's credit.
func (p TopicPeek) Linked(sub int64) (n int) {
	for key, l := range p.t.links.byKey {
		if key.sub == sub {
			n += l.outstanding()
		}
	}
	return n
}

// MayPanic reports whether an actor is one that is restarted.
func MayPanic(a actor.Actor) bool {
	switch a.(type) {
	case *topicActor, *shard.Actor, *worker:
		return true
	}
	return false
}

// Assigns reports whether a message tells a shard of tasks that were assigned. The shard
// counts them before it does anything else, so a panic never loses them uncounted.
func Assigns(message any) bool {
	switch message.(type) {
	case *shard.HoldTasks, *shard.HeldElsewhere, *shard.AddTasks:
		return true
	}
	return false
}

// SortedActors are the names of actors in order.
func SortedActors(all map[string]actor.Actor) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
