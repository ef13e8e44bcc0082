package client

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// LogLevel is from where on a node logs.
type LogLevel string

// The levels of logs. LogConfigured is the one that the node was started with.
const (
	LogConfigured LogLevel = "configured"
	LogDebug      LogLevel = "debug"
	LogInfo       LogLevel = "info"
	LogWarn       LogLevel = "warn"
	LogError      LogLevel = "error"
)

var logLevels = map[LogLevel]ddqv1.LogLevel{
	"":            ddqv1.LogLevel_LOG_LEVEL_UNSPECIFIED,
	LogConfigured: ddqv1.LogLevel_LOG_LEVEL_UNSPECIFIED,
	LogDebug:      ddqv1.LogLevel_LOG_LEVEL_DEBUG,
	LogInfo:       ddqv1.LogLevel_LOG_LEVEL_INFO,
	LogWarn:       ddqv1.LogLevel_LOG_LEVEL_WARN,
	LogError:      ddqv1.LogLevel_LOG_LEVEL_ERROR,
}

// LogChange is what a node is to log for a while.
type LogChange struct {
	Level LogLevel // LogConfigured ends what was asked for before

	// Topic is the one of which each thing that happens to a task is logged: Level is LogDebug or
	// LogConfigured then. Empty: Level is for everything that the node logs.
	Topic string

	// For is how long it lasts, a day at most. 0 is 5 minutes.
	For time.Duration
}

// SetLogLevel makes a node log more or less for a while. It returns until when; the zero time
// when nothing was turned on.
func (c *Fleet) SetLogLevel(ctx context.Context, node string, change LogChange) (until time.Time, err error) {
	level, known := logLevels[change.Level]
	if !known {
		level = -1 // which the node refuses
	}
	r, err := call.Answer(ctx, c.do, call.Idempotent, c.admin.SetLogLevel, &ddqv1.SetLogLevelRequest{
		Name: node, Level: level, Topic: change.Topic, ForMs: wire.Millis(change.For),
	})
	if ms := r.GetUntilUnixMs(); ms != 0 {
		until = time.UnixMilli(ms)
	}
	return until, err
}
