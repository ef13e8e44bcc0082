package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// layout is the shards of a topic on this node, by number. It does not change: a
// topic that gets other shards gets another layout.
type layout []layoutSlot

// layoutSlot is one shard. A number out of use has no actor.
type layoutSlot struct {
	pid *actor.PID
	shard.Slot
}

// layoutOf names the shards that a topic has now; those that last has too stay.
func layoutOf(rt *runtime.Runtime, topic *actor.PID, t *store.Topic, last layout) layout {
	l := make(layout, t.End())
	for _, s := range place.Shards(t) {
		if l[s.N] = last.at(s.N); l[s.N].pid == nil {
			l[s.N] = layoutSlot{actor.NewPID(topic.Address, topic.Id+"/"+shardName(s.N)), shard.Slot{Doze: new(shard.Doze), Inbox: new(shard.Inbox), Clock: rt.NewShardClock()}}
		}
	}
	return l
}

func shardName(n int) string { return fmt.Sprintf("shard-%d", n) }

// at returns the place of a shard, without an actor when it has none here.
func (l layout) at(n int) layoutSlot {
	if n < 0 || n >= len(l) {
		return layoutSlot{}
	}
	return l[n]
}

// changes are the shards that next has and l has not, and the other way round.
func (l layout) changes(next layout) (fresh, gone []int) {
	for n := range max(len(l), len(next)) {
		switch had, has := l.at(n).pid != nil, next.at(n).pid != nil; {
		case has && !had:
			fresh = append(fresh, n)
		case had && !has:
			gone = append(gone, n)
		}
	}
	return fresh, gone
}

// pids are the shards that there are.
func (l layout) pids() []*actor.PID {
	pids := make([]*actor.PID, 0, len(l))
	for _, p := range l {
		if p.pid != nil {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// numbers are those of the shards that there are.
func (l layout) numbers() (all []int) {
	for n, p := range l {
		if p.pid != nil {
			all = append(all, n)
		}
	}
	return all
}
