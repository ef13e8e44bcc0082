package peer

import (
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// deliveriesOf converts tasks that another node holds for a worker of this one.
func deliveriesOf(topic string, from []*ddqv1.Delivery) []subscription.Delivery {
	tasks, out := make([]store.Task, len(from)), make([]subscription.Delivery, len(from))
	for i, d := range from {
		wire.ReadTask(&tasks[i], d.Task)
		tasks[i].Journal = wire.ReadJournal(d.Journal)
		out[i] = subscription.Delivery{
			Topic:      topic,
			Task:       &tasks[i],
			MaxRetries: tasks[i].MaxRetries,
			Token:      d.HoldToken,
			Deadline:   wire.Millis(d.Task.GetHoldDeadline()),
			HoldFor:    time.Duration(d.HoldMs) * time.Millisecond,
		}
	}
	return out
}

// appendNotice adds a notice to a frame.
func appendNotice(f *ddqv1.NotifyRequest, n *fleet.Notice) {
	for i := range n.Pending {
		p := &n.Pending[i]
		w := &ddqv1.PendingNotice{
			Topic: p.Shard.Topic, Shard: int32(p.Shard.N), Seq: p.Seq,
			Ids: make([]string, len(p.Tasks)), DueUnixMs: make([]int64, len(p.Tasks)),
		}
		for k, t := range p.Tasks {
			w.Ids[k], w.DueUnixMs[k] = t.ID, int64(t.Due)
			if t.Traits != nil && w.Traits == nil {
				w.Traits = make([]*ddqv1.Traits, len(p.Tasks))
			}
		}
		for k := range w.Traits {
			w.Traits[k] = wire.PutTraits(p.Tasks[k].Traits)
		}
		f.Pending = append(f.Pending, w)
	}
	for i := range n.Ended {
		e := &n.Ended[i]
		w := &ddqv1.EndedNotice{Topic: e.Shard.Topic, Shard: int32(e.Shard.N)}
		for k := range e.Holds {
			w.Ids = append(w.Ids, e.Holds[k].ID)
			w.HoldTokens = append(w.HoldTokens, e.Holds[k].Token[:])
		}
		f.Ended = append(f.Ended, w)
	}
	for i := range n.Freed {
		w := &ddqv1.FreedNotice{Topic: n.Freed[i].Topic}
		for _, key := range n.Freed[i].Keys {
			w.Keys = append(w.Keys, []byte(key))
		}
		for _, key := range n.Freed[i].RateKeys {
			w.RateKeys = append(w.RateKeys, []byte(key))
		}
		f.Freed = append(f.Freed, w)
	}
	for _, s := range n.Released {
		f.Released = append(f.Released, &ddqv1.ReleasedNotice{Topic: s.Topic, Shard: int32(s.N)})
	}
	for _, w := range n.Waiting {
		f.Waiting = append(f.Waiting, &ddqv1.WaitingNotice{
			Topic: w.Shard.Topic, Shard: int32(w.Shard.N), Ids: w.IDs, Node: w.Node, First: w.First,
		})
	}
	for _, t := range n.Settled {
		f.Settled = append(f.Settled, &ddqv1.SettledNotice{Topic: t.Shard.Topic, Shard: int32(t.Shard.N), Ids: t.IDs})
	}
	for i := range n.Cancels {
		c := &n.Cancels[i]
		w := &ddqv1.CancelNotice{Topic: c.Shard.Topic, Shard: int32(c.Shard.N)}
		for k := range c.Holds {
			w.Ids = append(w.Ids, c.Holds[k].ID)
			w.HoldTokens = append(w.HoldTokens, c.Holds[k].Token[:])
		}
		f.Cancels = append(f.Cancels, w)
	}
}

func cancelsOf(from []*ddqv1.Cancel) []subscription.CancelAsk {
	asks := make([]subscription.CancelAsk, len(from))
	for i, c := range from {
		asks[i] = subscription.CancelAsk{ID: c.TaskId, Token: c.HoldToken}
	}
	return asks
}

func statusOf(r *ddqv1.DescribePeerResponse) fleet.PeerStatus {
	s := fleet.PeerStatus{
		Node:          r.Node,
		Uptime:        time.Duration(r.UptimeMs) * time.Millisecond,
		ClockOffset:   time.Duration(r.ClockOffsetUs) * time.Microsecond,
		Subscriptions: int(r.Subscriptions),

		Pulses:           wire.PulsesOf(r.Pulses),
		PulsesIncomplete: r.PulsesIncomplete,
		Logs:             wire.ReadLogs(r.Logs),
	}
	for _, o := range r.Shards {
		s.Shards = append(s.Shards, fleet.OwnedShard{
			Shard:    store.Shard{Topic: o.Topic, N: int(o.Shard)},
			Epoch:    o.Epoch,
			Wheel:    int(o.Wheel),
			Ready:    int(o.Ready),
			Held:     int(o.Held),
			Lateness: time.Duration(o.LatenessMs) * time.Millisecond,
			DueSoon:  fleet.DueSoon{From: store.Millis(o.DueFromUnixMs), Until: store.Millis(o.DueUntilUnixMs), Counts: o.Due},
		})
	}
	return s
}

func workersOf(r *ddqv1.ListPeerWorkersResponse) []fleet.Worker {
	workers := make([]fleet.Worker, len(r.Workers))
	for i, w := range r.Workers {
		workers[i] = fleet.Worker{
			WorkerKey:   fleet.WorkerKey{Topic: w.Worker.GetTopic(), Number: w.Number},
			Name:        w.Worker.GetName(),
			Since:       store.Millis(w.Worker.GetSinceUnixMs()),
			InFlight:    int(w.Worker.GetInFlight()),
			Credit:      int(w.Worker.GetCredit()),
			MaxInFlight: int(w.Worker.GetMaxInFlight()),
			Client:      w.Worker.GetClient(),
		}
	}
	return workers
}
