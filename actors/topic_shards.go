package actors

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/dispatch"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

// topicShards is the part of a topic's actor that knows its shards: it passes tasks on to
// them, and tells the core what they say.
type topicShards struct {
	*topicState
	owned []bool // by shard: this node may hold its tasks
}

func newTopicShards(state *topicState) *topicShards {
	return &topicShards{topicState: state, owned: make([]bool, state.topic.End())}
}

// receive handles a message of use cases for shards, or of a shard.
func (t *topicShards) receive(m any) {
	now := t.Clock.Now()
	switch m := m.(type) {
	case *AddBatch:
		t.enqueue(m)
	case *shard.BecameReady:
		t.core.Ready(now, m.Shard, m.Tasks)
	case *shard.SettledHolds:
		t.core.Settled(now, m.Sub, m.N)
	case *shard.Refunded:
		t.core.Unassign(now, dispatch.Address{Sub: m.Sub, Shard: m.Shard}, m.Counted)
		t.core.Refund(now, m.Sub, m.N-m.Counted)
	case *shard.HoldOutcome:
		t.core.Held(now, m.Shard, m.Outcome)
	case *shard.Owned:
		t.owned[m.Shard] = true
	case *shard.Lost:
		t.owned[m.Shard] = false
		t.core.Drop(now, m.Shard)
		if m.Ended {
			t.core.ShardEnded(now, m.Shard)
		}
	case *shard.ReadyGone:
		t.core.Drop(now, m.Shard)
	}
}

// spawner is the part of an actor's context that starts and ends others.
type spawner interface {
	SpawnNamed(props *actor.Props, name string) (*actor.PID, error)
	Poison(pid *actor.PID)
	Children() []*actor.PID
}

func (t *topicShards) spawn(c spawner, n int, at shard.Slot) {
	id := store.Shard{Topic: t.topic.Name, N: n}
	saved := new(shard.Saved)
	props := t.Props(func() actor.Actor { return shard.New(t.Runtime, id, &t.ref.shared, at, saved) })
	if _, err := c.SpawnNamed(props, shardName(n)); err != nil {
		panic(fmt.Sprintf("spawn shard %v: %v", id, err)) // names are ours: a bug
	}
}

// spawnAll spawns the shards of the layout.
func (t *topicShards) spawnAll(c spawner) {
	for n, p := range *t.ref.layout.Load() {
		if p.pid != nil {
			t.spawn(c, n, p.Slot)
		}
	}
}

// show tells the core which shards have an actor here.
func (t *topicShards) show() {
	layout := *t.ref.layout.Load()
	present := make([]bool, len(layout))
	for n := range layout {
		present[n] = layout[n].pid != nil
	}
	t.core.Shards(present)
}

// grow makes room for shards with numbers below n.
func (t *topicShards) grow(n int) {
	t.owned = append(t.owned, make([]bool, max(0, n-len(t.owned)))...)
}

// place tells the shards which of them are for this node to own, once others came or went.
func (t *topicShards) place() {
	for n := range *t.ref.layout.Load() {
		t.ref.place(n)
	}
}

func (t *topicShards) broadcast(m any) {
	for _, pid := range t.ref.shards() {
		t.Send(pid, m)
	}
}

// enqueue passes tasks to their shards. Those that are due at once get waiting
// credit, if there is any, and are held as they are stored.
func (t *topicShards) enqueue(m *AddBatch) {
	for n, items := range m.Shards {
		if len(items) == 0 {
			continue
		}
		pid := t.ref.shard(n)
		if pid == nil { // retired since: the caller looks again where they go
			shard.FailAdditions(items, problem.FromStore(store.ErrSealed))
			continue
		}
		if t.owned[n] {
			t.reserve(items, t.ref.clockOf(n).Millis())
		}
		t.Send(pid, &shard.AddTasks{Items: items})
	}
}

func (t *topicShards) reserve(items []shard.Addition, now store.Millis) {
	due := 0
	for i := range items {
		if items[i].Immediate(now) && !t.core.Applies(items[i].Task.Traits) {
			due++
		}
	}
	if due == 0 {
		return
	}
	given := t.core.TakeRoom(due)
	for i := 0; len(given) > 0; i++ {
		if items[i].Immediate(now) && !t.core.Applies(items[i].Task.Traits) {
			items[i].Sub, given = t.subscribers[given[0]], given[1:]
		}
	}
}

// GroupByShard returns the indexes of items by the shard they belong to.
func GroupByShard(n, shards int, shard func(i int) int) [][]int {
	groups := make([][]int, shards)
	for i := range n {
		at := shard(i)
		if groups[at] == nil {
			groups[at] = slices.Grow(groups[at], n/shards+1)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}
