package actors

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/lease"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/store"
)

// What tests of whole nodes see of the insides of actors.

type (
	BodySize      = subscription.BodySize
	ViewChanged   = viewChanged
	SeqSeen       = shard.SeqSeen
	ShardOwned    = shard.Owned
	DescribeShard = shard.DescribeShard
)

const (
	BodyOverhead        = subscription.BodyOverhead
	ResolveFor          = runtime.ResolveFor
	Renewals            = lease.Renewals
	WaitsForRate        = metrics.WaitsForRate
	WaitsForConcurrency = metrics.WaitsForConcurrency
	WaitsForOrder       = metrics.WaitsForOrder
)

var (
	DecodeToken = subscription.DecodeToken
	Sleep       = shard.Sleep
)

// Unsent is how many bytes of bodies the node has held and not sent.
func (s *Node) Unsent() int64 { return s.rt.Bodies.Unsent.Load() }

// Session is the node's.
func (s *Node) Session() store.Session { return s.rt.Keeper.Session() }

// Broadcast tells every topic something.
func (s *Node) Broadcast(m any) { s.topics.broadcast(m) }

// LoseLease tells every shard that the lease is lost.
func (s *Node) LoseLease() { s.topics.broadcast(&shard.LeaseLost{}) }

// LeaseBack tells every shard that there is a lease again.
func (s *Node) LeaseBack() { s.topics.broadcast(&shard.LeaseBack{}) }

// ShowSeq shows a shard how far the store is.
func (s *Node) ShowSeq(at store.Shard, seq int64) { s.Peer().toShard(at, &shard.SeqSeen{Seq: seq}) }

// PanicShard has the actor of a shard panic: nobody may send on a closed channel.
func (s *Node) PanicShard(topic string, n int) {
	ref, _ := s.Topics().Opened(topic)
	closed := make(chan fleet.OwnedShard)
	close(closed)
	ref.tell(n, &shard.DescribeShard{Reply: closed})
}

// StopShard has the actor of a shard stop.
func (s *Node) StopShard(topic string, n int) {
	ref, _ := s.Topics().Opened(topic)
	s.rt.Root.Poison(ref.shard(n))
}

// PanicTopic has the actor of a topic panic: it has no such shard.
func (s *Node) PanicTopic(topic string) {
	ref, _ := s.Topics().Opened(topic)
	s.rt.Send(ref.pid, &shard.Owned{Shard: -1})
}

// SetMeanBody has the topic believe in a size of bodies.
func (r *Topic) SetMeanBody(bytes int64) { r.shared.Bodies.Mean.Store(bytes) }

// Rival is another process of a node's name, as far as the store sees it.
type Rival struct{ *lease.Keeper }

func NewRival(st store.Store, log *slog.Logger, session store.Session) Rival {
	return Rival{lease.New(st, log, session)}
}

// EndTopic has a topic's actor stop while calls may still have it, as an instant of its
// deletion does.
func (s *Node) EndTopic(name string) {
	ref, _ := s.Topics().Opened(name)
	s.topics.opened.Delete(name)
	s.rt.Root.Poison(ref.pid)
}

// OnlyTopic is the one topic that is open.
func (s *Node) OnlyTopic() (ref *Topic) {
	s.topics.opened.Range(func(_, v any) bool { ref = v.(*Topic); return true })
	return ref
}

// WaitGauges and SubscriptionGauge are metrics of the node.
func WaitGauges(m *metrics.Metrics) *prometheus.GaugeVec { return m.Waits }

func SubscriptionGauge(m *metrics.Metrics) prometheus.Gauge { return m.Subscriptions }
