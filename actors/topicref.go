package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

// Topic is how use cases reach a topic.
type Topic struct {
	shared        shard.Topic
	rt            *runtime.Runtime
	pid           *actor.PID
	ready         chan struct{}          // closed once the shards can be sent to
	layout        atomic.Pointer[layout] // changes before the configuration does
	opened        atomic.Bool            // hints of other nodes find its shards; none is claimed before
	looking       atomic.Bool            // its configuration is being read, for a hint
	turn          int                    // when its shards are ticked, 0 to beats-1
	touched       atomic.Int64           // when it was last looked up, in Unix nanoseconds: see CloseIdle
	closing       atomic.Bool            // it is idle, and may be gone in a moment
	subscriptions atomic.Int64           // of this node's workers
	draining      *drainTopic            // the topic's actor's, kept over its restarts
	companion     companion
}

// companion is what the use cases keep of a topic for as long as it is open.
type companion struct {
	once sync.Once
	kept any
}

// Get returns what is kept, made on first use. Safe for concurrent use.
func (c *companion) Get(newKept func() any) any {
	c.once.Do(func() { c.kept = newKept() })
	return c.kept
}

// Config is the topic's configuration as this node goes by it. It does not change.
func (r *Topic) Config() *store.Topic { return r.shared.Current.Load() }

// LastUsed is when the topic was last used here, in Unix nanoseconds.
func (r *Topic) LastUsed() int64 { return r.shared.Active.Load() }

// Companion is what the use cases keep of the topic for as long as it is open, made on
// first use.
func (r *Topic) Companion(newKept func() any) any { return r.companion.Get(newKept) }

// shard returns the actor of a shard, nil when it has none here.
func (r *Topic) shard(n int) *actor.PID { return r.layout.Load().at(n).pid }

// shards are the actors of all shards.
func (r *Topic) shards() []*actor.PID { return r.layout.Load().pids() }

// tell sends a message to a shard, and reports whether it has an actor here.
func (r *Topic) tell(n int, m any) bool {
	pid := r.shard(n)
	if pid != nil {
		r.rt.Send(pid, m)
	}
	return pid != nil
}

// place tells a shard that hints of other nodes find it, and that it may be for this node
// to own.
func (r *Topic) place(n int) { r.tell(n, &shard.Placed{}) }

// lookAgain reads what became of a topic.
func (r *Topic) lookAgain() {
	ctx, cancel := context.WithTimeout(context.Background(), shard.StoreRetry)
	defer cancel()
	if topic := r.shared.Current.Load().Name; r.rt.Refresh(ctx, topic) != nil {
		r.rt.Log.Debug("topic not read again", "topic", topic)
	}
}

// clockOf returns the clock that the due times of a shard are on.
func (r *Topic) clockOf(n int) *clock.Clock {
	if c := r.layout.Load().at(n).Clock; c != nil {
		return c
	}
	return r.rt.Clock
}

// Latest returns a moment that no clock of the shards of a topic has passed yet.
func (r *Topic) Latest() time.Time {
	latest := r.rt.Clock.Latest()
	if !r.rt.ManyClocks {
		return latest
	}
	for _, p := range *r.layout.Load() {
		if p.Clock == nil {
			continue
		}
		if t := p.Clock.Latest(); t.After(latest) {
			latest = t
		}
	}
	return latest
}

// touch records that the topic is not idle.
func (r *Topic) touch() { r.touched.Store(time.Now().UnixNano()) }

// release has the shards of a topic finish their store calls and release their claims. It
// adds to waits what closes then.
func (r *Topic) release(waits []chan struct{}) []chan struct{} {
	for _, pid := range r.shards() {
		done := make(chan struct{})
		waits = append(waits, done)
		r.rt.Send(pid, &shard.ReleaseShard{Done: done})
	}
	return waits
}
