package peer

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

// deliveriesOf converts tasks that another node holds for a worker of this one.
func deliveriesOf(topic string, from []*ddqv1.Delivery) []actors.Delivery {
	tasks, out := make([]store.Task, len(from)), make([]actors.Delivery, len(from))
	for i, d := range from {
		taskOf(&tasks[i], d.Task)
		out[i] = actors.Delivery{
			Topic:      topic,
			Task:       &tasks[i],
			MaxRetries: tasks[i].MaxRetries,
			Token:      d.HoldToken,
			Deadline:   millisOf(d.Task.GetHoldDeadline()),
			HoldFor:    time.Duration(d.HoldMs) * time.Millisecond,
		}
	}
	return out
}

func taskOf(t *store.Task, from *ddqv1.Task) {
	t.ID, t.Payload = from.GetId(), from.GetPayload()
	t.Due, t.Created = millisOf(from.GetExecuteTime()), millisOf(from.GetCreatedAt())
	t.Expires = millisOf(from.GetExpireTime())
	t.MaxRetries = int(from.GetMaxRetries())
	t.Attempt = int(from.GetRetryCount()) + 1
	t.LastError = from.GetLastError()
	t.Edits = max(0, from.GetVersion()-1)
	t.Visibility = time.Duration(from.GetVisibilityTimeoutMs()) * time.Millisecond
	t.Backoff = backoffOf(from.GetBackoff())
	if key := from.GetIdempotencyKey(); key != "" {
		t.Key = &store.Key{Text: key}
	}
	traits := store.Traits{
		Priority: int(from.GetPriority()), FairnessKey: from.GetFairnessKey(), FairnessWeight: int(from.GetFairnessWeight()),
		RateKey: from.GetRateKey(), ConcurrencyKey: from.GetConcurrencyKey(), OrderingKey: from.GetOrderingKey(),
	}
	if traits != (store.Traits{}) {
		t.Traits = new(store.Traits)
		*t.Traits = traits
	}
	for _, a := range from.GetAttributes() {
		t.Attributes = append(t.Attributes, store.Attribute{Key: a.Key, Value: a.Value})
	}
}

// backoffKinds are those of the wire.
var backoffKinds = map[ddqv1.BackoffKind]store.BackoffKind{
	ddqv1.BackoffKind_BACKOFF_KIND_FIXED:       store.BackoffFixed,
	ddqv1.BackoffKind_BACKOFF_KIND_LINEAR:      store.BackoffLinear,
	ddqv1.BackoffKind_BACKOFF_KIND_QUADRATIC:   store.BackoffQuadratic,
	ddqv1.BackoffKind_BACKOFF_KIND_EXPONENTIAL: store.BackoffExponential,
}

func backoffOf(b *ddqv1.Backoff) *store.Backoff {
	if b == nil {
		return nil
	}
	return &store.Backoff{
		Kind:   backoffKinds[b.GetKind()],
		Base:   time.Duration(b.GetBaseMs()) * time.Millisecond,
		Max:    time.Duration(b.GetMaxMs()) * time.Millisecond,
		Jitter: int(b.GetJitterPercent()),
	}
}

func millisOf(t *timestamppb.Timestamp) store.Millis {
	if t == nil {
		return 0
	}
	return store.Millis(t.AsTime().UnixMilli())
}

// appendNotice adds a notice to a frame.
func appendNotice(f *ddqv1.NotifyRequest, n *actors.Notice) {
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
			w.Traits[k] = traitsWire(p.Tasks[k].Traits)
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

func cancelsOf(from []*ddqv1.Cancel) []actors.CancelAsk {
	asks := make([]actors.CancelAsk, len(from))
	for i, c := range from {
		asks[i] = actors.CancelAsk{ID: c.TaskId, Token: c.HoldToken}
	}
	return asks
}

// traitsWire returns empty traits for a task without any.
func traitsWire(t *store.Traits) *ddqv1.Traits {
	if t == nil {
		return &ddqv1.Traits{}
	}
	return &ddqv1.Traits{
		Priority: int32(t.Priority), FairnessKey: t.FairnessKey, FairnessWeight: int32(t.FairnessWeight),
		RateKey: t.RateKey, ConcurrencyKey: t.ConcurrencyKey, OrderingKey: t.OrderingKey,
	}
}

func statusOf(r *ddqv1.DescribePeerResponse) actors.PeerStatus {
	s := actors.PeerStatus{
		Node:          r.Node,
		Uptime:        time.Duration(r.UptimeMs) * time.Millisecond,
		ClockOffset:   time.Duration(r.ClockOffsetUs) * time.Microsecond,
		Subscriptions: int(r.Subscriptions),
	}
	for _, o := range r.Shards {
		s.Shards = append(s.Shards, actors.OwnedShard{
			Shard:    store.Shard{Topic: o.Topic, N: int(o.Shard)},
			Epoch:    o.Epoch,
			Wheel:    int(o.Wheel),
			Ready:    int(o.Ready),
			Held:     int(o.Held),
			Lateness: time.Duration(o.LatenessMs) * time.Millisecond,
		})
	}
	return s
}
