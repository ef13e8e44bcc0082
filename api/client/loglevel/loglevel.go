// Package loglevel says what a node is to log for a while, as client.Fleet asks for it.
package loglevel

import (
	"time"

	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Level is from where on a node logs.
type Level string

// The levels of logs. Configured is the one that the node was started with.
const (
	Configured Level = "configured"
	Debug      Level = "debug"
	Info       Level = "info"
	Warn       Level = "warn"
	Error      Level = "error"
)

// Silent is above every level. No node can be asked for it.
const Silent Level = "silent"

var levels = map[Level]ddqv1.LogLevel{
	"":         ddqv1.LogLevel_LOG_LEVEL_UNSPECIFIED,
	Configured: ddqv1.LogLevel_LOG_LEVEL_UNSPECIFIED,
	Debug:      ddqv1.LogLevel_LOG_LEVEL_DEBUG,
	Info:       ddqv1.LogLevel_LOG_LEVEL_INFO,
	Warn:       ddqv1.LogLevel_LOG_LEVEL_WARN,
	Error:      ddqv1.LogLevel_LOG_LEVEL_ERROR,
}

// Change is what a node is to log for a while.
type Change struct {
	Level Level // Configured ends what was asked for before

	// Topic is the one of which each thing that happens to a task is logged: Level is Debug or
	// Configured then. Empty: Level is for everything that the node logs.
	Topic string

	// For is how long it lasts, a day at most. 0 is 5 minutes.
	For time.Duration
}

// Request asks a node for a change. It refuses a level that there is not.
func (c *Change) Request(node string) *ddqv1.SetLogLevelRequest {
	level, known := levels[c.Level]
	if !known {
		level = -1
	}
	return &ddqv1.SetLogLevelRequest{Name: node, Level: level, Topic: c.Topic, ForMs: wire.Millis(c.For)}
}

// Now is what a node logs.
type Now struct {
	Level  Level      `json:"level"`            // Silent when it logs nothing
	Until  time.Time  `json:"until,omitzero"`   // of a level that was set; zero: as it was configured
	Topics []TopicNow `json:"topics,omitempty"` // of which each thing that happens to a task is logged
}

// TopicNow is a topic of which each thing that happens to a task is logged.
type TopicNow struct {
	Topic string    `json:"topic"`
	Until time.Time `json:"until"`
}

// NowFrom reads what a node said; nil from a server of before.
func NowFrom(l *ddqv1.NodeLogs) *Now {
	if l == nil {
		return nil
	}
	now := &Now{Level: Silent, Until: wire.UnixTime(l.GetUntilUnixMs())}
	for level, is := range levels {
		if is == l.GetLevel() && is != ddqv1.LogLevel_LOG_LEVEL_UNSPECIFIED {
			now.Level = level
		}
	}
	for _, t := range l.GetTopics() {
		now.Topics = append(now.Topics, TopicNow{t.GetTopic(), wire.UnixTime(t.GetUntilUnixMs())})
	}
	return now
}

// Until is when a change ends, by what a node answered; the zero time when nothing was turned on.
func Until(r *ddqv1.SetLogLevelResponse, err error) (time.Time, error) {
	return wire.UnixTime(r.GetUntilUnixMs()), err
}
