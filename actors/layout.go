package actors

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/store"
)

// layout is the shards of a topic on this node, by number. It does not change: a
// topic that gets other shards gets another layout.
type layout []place

// place is one shard. A number out of use has no actor.
type place struct {
	pid    *actor.PID
	dozing *atomic.Bool // ticks are of no use to it
}

// layoutOf names the shards that a topic has now; those that last has too stay.
func layoutOf(topic *actor.PID, t *store.Topic, last layout) layout {
	l := make(layout, t.End())
	for _, s := range shardsOf(t) {
		if l[s.N] = last.at(s.N); l[s.N].pid == nil {
			l[s.N] = place{actor.NewPID(topic.Address, topic.Id+"/"+shardName(s.N)), new(atomic.Bool)}
		}
	}
	return l
}

func shardName(n int) string { return fmt.Sprintf("shard-%d", n) }

// at returns the place of a shard, without an actor when it has none here.
func (l layout) at(n int) place {
	if n < 0 || n >= len(l) {
		return place{}
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

// shard returns the actor of a shard, nil when it has none here.
func (r *topicRef) shard(n int) *actor.PID { return r.layout.Load().at(n).pid }

// shards are the actors of all shards.
func (r *topicRef) shards() []*actor.PID { return r.layout.Load().pids() }

// tell sends a message to a shard, if it has an actor here.
func (rt *runtime) tell(r *topicRef, n int, m any) {
	if pid := r.shard(n); pid != nil {
		rt.send(pid, m)
	}
}

// place tells a shard that hints of other nodes find it, and whether it is for this node
// to own.
func (rt *runtime) place(r *topicRef, n int) {
	wanted := rt.fleet.owns(store.Shard{Topic: r.config.Load().Name, N: n})
	rt.tell(r, n, &placed{wanted: wanted})
}

// shardsOf are the shards that may have tasks, by number.
func shardsOf(t *store.Topic) []store.Shard {
	var shards []store.Shard
	spans := t.Spans()
	for i := len(spans) - 1; i >= 0; i-- {
		for n := range spans[i].Shards {
			shards = append(shards, store.Shard{Topic: t.Name, N: spans[i].First + n})
		}
	}
	return shards
}

// placeOf is the shard of an id among those of a generation.
func placeOf(t *store.Topic, span store.Span, id string) store.Shard {
	return store.Shard{Topic: t.Name, N: span.First + shardOf(id, span.Shards)}
}

// placesOf are the shards that may have a task, the likeliest first.
func placesOf(t *store.Topic, id string) []store.Shard {
	spans := t.Spans()
	places := make([]store.Shard, len(spans))
	for i, span := range spans {
		places[i] = placeOf(t, span, id)
	}
	return places
}

// resharding reports whether a topic has shards from before that may have tasks.
func resharding(t *store.Topic) bool { return t.Former[0].Shards > 0 }
