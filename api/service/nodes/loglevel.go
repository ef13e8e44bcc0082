package nodes

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
)

const (
	defaultLogFor = 5 * time.Minute
	mostLogFor    = 24 * time.Hour
)

// SetLogLevel makes a node log more or less for a while. It returns until when, the zero time
// when nothing was turned on.
func (s *Fleet) SetLogLevel(ctx context.Context, name string, l fleet.LogLevel) (time.Time, error) {
	if l.For < 0 || l.For > mostLogFor {
		return time.Time{}, problem.BadField("for_ms", "OUT_OF_RANGE_FIELD", "for_ms must be 0 to %d", mostLogFor.Milliseconds())
	}
	l.For = cmp.Or(l.For, defaultLogFor)
	if l.Topic != "" {
		if l.Level != nil && *l.Level != slog.LevelDebug {
			return time.Time{}, problem.BadField("level", "BAD_LEVEL", "level of a topic must be debug, or unspecified to end that")
		}
		if _, e := s.topics(ctx, l.Topic); e != nil {
			return time.Time{}, e
		}
	}
	if name == s.node.Config().Node {
		return s.node.Peer().SetLogLevel(l)
	}
	m, ok := s.node.Membership().Member(name)
	if !ok {
		return time.Time{}, errNoNode(name)
	}
	until, err := s.node.Membership().Peers().SetLogLevel(ctx, m, l)
	return until, problem.AsError(err)
}
