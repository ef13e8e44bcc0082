package peer

import (
	"context"
	"log/slog"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
)

var logLevels = map[slog.Level]ddqv1.LogLevel{
	slog.LevelDebug: ddqv1.LogLevel_LOG_LEVEL_DEBUG,
	slog.LevelInfo:  ddqv1.LogLevel_LOG_LEVEL_INFO,
	slog.LevelWarn:  ddqv1.LogLevel_LOG_LEVEL_WARN,
	slog.LevelError: ddqv1.LogLevel_LOG_LEVEL_ERROR,
}

// SetLogLevel makes a node log more or less for a while, and returns until when.
func (p *Peers) SetLogLevel(ctx context.Context, to fleet.Member, l fleet.LogLevel) (until time.Time, err error) {
	n, err := p.node(to)
	if err != nil {
		return until, failureOf(to, err)
	}
	r := &ddqv1.SetPeerLogLevelRequest{Topic: l.Topic, ForMs: l.For.Milliseconds()}
	if l.Level != nil {
		r.Level = logLevels[*l.Level]
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
