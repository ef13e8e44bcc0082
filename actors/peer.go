package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/loglevel"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/store"
)

// Peer is a node as the other nodes of its fleet see it: it hears their hints, says how it
// fares, and gives up shards when it is asked to.
type Peer struct {
	rt      *runtime.Runtime
	topics  *Topics
	started func() time.Time
}

// Notified passes on what another node says. It does not wait.
func (p *Peer) Notified(n fleet.Notice) {
	for _, m := range n.Pending {
		p.toShard(m.Shard, &shard.PendingElsewhere{Seq: m.Seq, Tasks: m.Tasks})
	}
	for _, e := range n.Ended {
		p.toShard(e.Shard, &shard.EndedElsewhere{Holds: e.Holds})
	}
	for _, f := range n.Freed {
		tellFreed(p.topics, f)
	}
	for _, w := range n.Waiting {
		p.toShard(w.Shard, &shard.WaitedElsewhere{Ids: w.IDs, Node: w.Node, First: w.First})
	}
	for _, t := range n.Settled {
		p.rt.TellSettled(t.Shard, t.IDs...)
		p.toShard(t.Shard, &shard.GoneElsewhere{Ids: t.IDs})
	}
	for _, c := range n.Cancels {
		p.toShard(c.Shard, &shard.CancelHolds{Holds: c.Holds})
	}
	for _, r := range n.Released {
		p.toShard(r, &shard.Placed{Told: true})
	}
}

// Wanted passes on which shards of this node others asked for. Who gossip does not show does not
// tell this node of tasks either.
func (p *Peer) Wanted(notes []store.Wanted) {
	if !p.rt.Running.Load() || p.rt.Stopping.Load() {
		return
	}
	shards := make(map[string][]int)
	for _, w := range notes {
		p.rt.NoteUnseen(w.By)
		shards[w.Shard.Topic] = append(shards[w.Shard.Topic], w.Shard.N)
	}
	if len(p.rt.Fleet.Unseen()) > 0 {
		p.rt.Fleet.NoteLoss()
	}
	for topic, numbers := range ordered.All(shards, strings.Compare) {
		if ref, open := p.topics.Opened(topic); open {
			p.rt.Send(ref.pid, &wantedShards{numbers})
			continue
		}
		for _, n := range numbers {
			p.openFor(store.Shard{Topic: topic, N: n}, true)
		}
	}
}

// Resumed records that another node begins to say things: what it had to say
// before may be lost.
func (p *Peer) Resumed() { p.rt.Fleet.NoteLoss() }

// toShard passes a hint to a shard. A topic that is not open is opened, which makes the
// hint needless.
func (p *Peer) toShard(at store.Shard, m any) {
	if !p.rt.Running.Load() || p.rt.Stopping.Load() {
		return
	}
	if ref, ok := p.topics.inUse(at.Topic); ok {
		p.rt.Use(&ref.shared.Active)
		if pid := ref.shard(at.N); pid != nil {
			p.rt.Send(pid, m)
			return
		}
		if ref.looking.CompareAndSwap(false, true) { // it may have got other shards
			p.rt.Pool.Run(func() {
				defer ref.looking.Store(false)
				ref.lookAgain()
			})
		}
		return
	}
	_, told := m.(*shard.Placed)
	p.openFor(at, told)
}

// openFor opens a topic that this node owns a shard of. Told that the store says so, it
// opens the topic in any case: the shard gives up what it should not have.
func (p *Peer) openFor(at store.Shard, told bool) {
	if !told && !p.rt.Fleet.Owns(at) {
		return
	}
	p.rt.Pool.Run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shard.StoreRetry)
		defer cancel()
		ref, err := p.topics.Open(ctx, at.Topic, false) // what is not opened now is found by discover
		if told && err == nil {
			ref.tell(at.N, &shard.Placed{Told: true})
		}
	})
}

// Describe says how the node fares.
func (p *Peer) Describe(ctx context.Context, q fleet.StatusQuery) (fleet.PeerStatus, error) {
	if !p.rt.Running.Load() {
		return fleet.PeerStatus{}, p.rt.Serving()
	}
	status := fleet.PeerStatus{
		Node:        p.rt.Name,
		Uptime:      time.Since(p.started()),
		ClockOffset: time.Until(p.rt.Clock.Now()),
		Logs:        p.logs(),
	}
	if len(q.Pulses) > 0 {
		status.Pulses, status.PulsesIncomplete = p.rt.Meter.Reports(q.Pulses), p.rt.Meter.Incomplete()
	}
	var asked []chan fleet.OwnedShard
	p.topics.Each(func(ref *Topic) {
		status.Subscriptions += int(ref.subscriptions.Load())
		for _, pid := range ref.shards() {
			reply := make(chan fleet.OwnedShard, 1)
			asked = append(asked, reply)
			p.rt.Send(pid, &shard.DescribeShard{Reply: reply, Due: q.DueSoon})
		}
	})
	for _, reply := range asked {
		select {
		case d := <-reply:
			if d.Epoch != 0 {
				status.Shards = append(status.Shards, d)
			}
		case <-ctx.Done():
			return fleet.PeerStatus{}, problem.AsError(ctx.Err())
		}
	}
	return status, nil
}

// logs are what the node logs now.
func (p *Peer) logs() *fleet.Logs {
	logs := new(fleet.Logs)
	logs.Level, logs.Until = p.rt.Tasks.Level()
	topics := p.rt.Tasks.Topics()
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		logs.Topics = append(logs.Topics, fleet.TopicLogs{Topic: topic, Until: topics[topic]})
	}
	return logs
}

// Drain makes the node give up its shards, or take shards again.
func (p *Peer) Drain(draining bool) error {
	if p.rt.Fleet.Alone() {
		return &problem.Error{Kind: problem.Precondition, Reason: "NO_FLEET", Field: "name",
			Message: "the node stands alone: there is nobody to hand its shards over to"}
	}
	return problem.AsError(p.rt.Fleet.SetDrained(draining))
}

// SetLogLevel makes the node log more or less for a while. It returns until when, the zero
// time when nothing was turned on.
func (p *Peer) SetLogLevel(l fleet.LogLevel) (until time.Time, err error) {
	levels := p.rt.Tasks.Levels
	switch {
	case l.Level == nil && l.Topic == "":
		levels.Reset()
		p.rt.Log.Info("log level as configured")
		return until, nil
	case l.Level == nil:
		levels.ResetTopic(l.Topic)
		p.rt.Log.Info("lines of tasks off", "topic", l.Topic)
		return until, nil
	}
	until = time.Now().Add(l.For)
	if l.Topic == "" {
		p.rt.Log.Info("log level changed", "level", *l.Level, "until", until)
		levels.Set(*l.Level, until)
		return until, nil
	}
	if err := levels.SetTopic(l.Topic, until); err != nil {
		return time.Time{}, &problem.Error{Kind: problem.Precondition, Reason: "TOO_MANY_TOPICS", Field: "topic", Message: fmt.Sprintf("%v: %d at a time", err, loglevel.MostTopics)}
	}
	p.rt.Log.Info("lines of tasks on", "topic", l.Topic, "until", until)
	return until, nil
}

// ReleaseShard makes the node give up a shard that it owns. If it is placed
// here it is claimed again, with a new epoch.
func (p *Peer) ReleaseShard(ctx context.Context, at store.Shard) error {
	ref, e := p.topics.Open(ctx, at.Topic, false)
	if e != nil {
		return e
	}
	if ref.shard(at.N) == nil {
		return ErrNoShard(at)
	}
	ref.tell(at.N, &shard.HandShard{})
	return nil
}
