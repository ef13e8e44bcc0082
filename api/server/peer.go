package server

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/audits"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// peer serves PeerService: what other nodes of the fleet have to say.
type peer struct {
	ddqv1.UnsafePeerServiceServer
	audits.Peer
	*lifetime
	nodes   *guard.Nodes
	service *service.Service
}

var _ ddqv1.PeerServiceServer = (*peer)(nil)

func (p *peer) Notify(stream grpc.ClientStreamingServer[ddqv1.NotifyRequest, ddqv1.NotifyResponse]) error {
	if err := p.nodes.CheckAny(stream.Context()); err != nil {
		return err
	}
	p.service.Node().Peer().Resumed()
	frames := make(chan *ddqv1.NotifyRequest)
	ended := make(chan error, 1)
	p.loops.Go(func() { ended <- receiveNotices(stream, frames) })
	for {
		select {
		case f := <-frames:
			p.service.Node().Peer().Notified(noticeOf(f))
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return stream.SendAndClose(&ddqv1.NotifyResponse{})
			}
			return err
		case <-p.drain.Done():
			return status.Draining()
		}
	}
}

// receiveNotices passes frames on until the stream ends, which the handler's
// return makes it do.
func receiveNotices(stream grpc.ClientStreamingServer[ddqv1.NotifyRequest, ddqv1.NotifyResponse], frames chan<- *ddqv1.NotifyRequest) error {
	for {
		f, err := stream.Recv()
		if err != nil {
			return err
		}
		select {
		case frames <- f:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// noticeOf converts a frame. What is malformed in it is left out: they are hints.
func noticeOf(f *ddqv1.NotifyRequest) (n fleet.Notice) {
	for _, p := range f.Pending {
		if len(p.Ids) != len(p.DueUnixMs) {
			continue
		}
		notice := fleet.PendingNotice{Shard: shardOf(p.Topic, p.Shard), Seq: p.Seq, Tasks: make([]store.Entry, len(p.Ids))}
		for i, id := range p.Ids {
			notice.Tasks[i] = store.Entry{ID: id, Due: store.Millis(p.DueUnixMs[i])}
			if len(p.Traits) == len(p.Ids) {
				notice.Tasks[i].Traits = wire.ReadTraits(p.Traits[i])
			}
		}
		n.Pending = append(n.Pending, notice)
	}
	for _, e := range f.Ended {
		n.Ended = append(n.Ended, fleet.EndedNotice{Shard: shardOf(e.Topic, e.Shard), Holds: holdsOf(e.Ids, e.HoldTokens)})
	}
	for _, w := range f.Waiting {
		n.Waiting = append(n.Waiting, fleet.WaitingNotice{Shard: shardOf(w.Topic, w.Shard), IDs: w.Ids, Node: w.Node, First: w.First})
	}
	for _, t := range f.Settled {
		n.Settled = append(n.Settled, fleet.SettledNotice{Shard: shardOf(t.Topic, t.Shard), IDs: t.Ids})
	}
	for _, c := range f.Cancels {
		n.Cancels = append(n.Cancels, fleet.CancelNotice{Shard: shardOf(c.Topic, c.Shard), Holds: holdsOf(c.Ids, c.HoldTokens)})
	}
	for _, freed := range f.Freed {
		notice := fleet.FreedNotice{Topic: freed.Topic}
		for _, key := range freed.Keys {
			notice.Keys = append(notice.Keys, string(key))
		}
		for _, key := range freed.RateKeys {
			notice.RateKeys = append(notice.RateKeys, string(key))
		}
		n.Freed = append(n.Freed, notice)
	}
	for _, r := range f.Released {
		n.Released = append(n.Released, shardOf(r.Topic, r.Shard))
	}
	return n
}

func holdsOf(ids []string, tokens [][]byte) (holds []fleet.EndedHold) {
	for i, id := range ids {
		hold := fleet.EndedHold{ID: id}
		if i < len(tokens) && copy(hold.Token[:], tokens[i]) == len(hold.Token) {
			holds = append(holds, hold)
		}
	}
	return holds
}

func shardOf(topic string, n int32) store.Shard { return store.Shard{Topic: topic, N: int(n)} }

func (p *peer) DescribePeer(ctx context.Context, r *ddqv1.DescribePeerRequest) (*ddqv1.DescribePeerResponse, error) {
	s, err := p.service.Node().Peer().Describe(ctx, fleet.StatusQuery{DueSoon: r.DueSoon, Pulses: r.Pulses})
	if err != nil {
		return nil, err
	}
	out := &ddqv1.DescribePeerResponse{
		Node:          s.Node,
		UptimeMs:      s.Uptime.Milliseconds(),
		ClockOffsetUs: s.ClockOffset.Microseconds(),
		Subscriptions: int64(s.Subscriptions),

		Pulses:           wire.PeerPulses(s.Pulses),
		PulsesIncomplete: s.PulsesIncomplete,
		Logs:             wire.Logs(s.Logs),
	}
	for i := range s.Shards {
		o := &s.Shards[i]
		out.Shards = append(out.Shards, &ddqv1.OwnedShard{
			Topic:      o.Topic,
			Shard:      int32(o.N),
			Epoch:      o.Epoch,
			Wheel:      int64(o.Wheel),
			Ready:      int64(o.Ready),
			Held:       int64(o.Held),
			LatenessMs: o.Lateness.Milliseconds(),

			DueFromUnixMs:  int64(o.DueSoon.From),
			DueUntilUnixMs: int64(o.DueSoon.Until),
			Due:            o.DueSoon.Counts,
		})
	}
	return out, nil
}

func (p *peer) DrainPeer(ctx context.Context, r *ddqv1.DrainPeerRequest) (*ddqv1.DrainPeerResponse, error) {
	if err := p.nodes.CheckAny(ctx); err != nil {
		return nil, err
	}
	return &ddqv1.DrainPeerResponse{}, p.service.Node().Peer().Drain(r.Draining)
}

func (p *peer) SetPeerLogLevel(ctx context.Context, r *ddqv1.SetPeerLogLevelRequest) (*ddqv1.SetPeerLogLevelResponse, error) {
	if err := p.nodes.CheckAny(ctx); err != nil {
		return nil, err
	}
	level, err := logLevelOf(r.Level, r.Topic, r.ForMs)
	if err != nil {
		return nil, err
	}
	until, err := p.service.Node().Peer().SetLogLevel(level)
	return &ddqv1.SetPeerLogLevelResponse{UntilUnixMs: wire.UnixMillis(until)}, err
}

func (p *peer) ReleasePeerShard(ctx context.Context, r *ddqv1.ReleasePeerShardRequest) (*ddqv1.ReleasePeerShardResponse, error) {
	if err := p.nodes.CheckAny(ctx); err != nil {
		return nil, err
	}
	return &ddqv1.ReleasePeerShardResponse{}, p.service.Node().Peer().ReleaseShard(ctx, shardOf(r.Topic, r.Shard))
}
