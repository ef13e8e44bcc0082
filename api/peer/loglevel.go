package peer

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
)

// SetLogLevel makes a node log more or less for a while, and returns until when.
func (p *Peers) SetLogLevel(ctx context.Context, to fleet.Member, l fleet.LogLevel) (until time.Time, err error) {
	n, err := p.node(to)
	if err != nil {
		return until, failureOf(to, err)
	}
	r := &ddqv1.SetPeerLogLevelRequest{Topic: l.Topic, ForMs: l.For.Milliseconds()}
	if l.Level != nil {
		r.Level = wire.LogLevels[*l.Level]
	}
	reply, err := n.peer.SetPeerLogLevel(ctx, r)
	if err != nil {
		return until, failureOf(to, err)
	}
	if reply.UntilUnixMs != 0 {
		until = time.UnixMilli(reply.UntilUnixMs)
	}
	return until, nil
}
