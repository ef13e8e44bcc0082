package wire

import (
	"log/slog"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/store"
)

// LogLevels are those that nodes are asked for.
var LogLevels = map[slog.Level]ddqv1.LogLevel{
	slog.LevelDebug: ddqv1.LogLevel_LOG_LEVEL_DEBUG,
	slog.LevelInfo:  ddqv1.LogLevel_LOG_LEVEL_INFO,
	slog.LevelWarn:  ddqv1.LogLevel_LOG_LEVEL_WARN,
	slog.LevelError: ddqv1.LogLevel_LOG_LEVEL_ERROR,
}

// silent is above every level.
const silent = slog.LevelError + 4

// ReadLogLevel returns false for a level that there is not, and for none.
func ReadLogLevel(l ddqv1.LogLevel) (slog.Level, bool) {
	for level, on := range LogLevels {
		if on == l {
			return level, true
		}
	}
	return silent, false
}

// Logs is what a node logs; nil stays nil.
func Logs(l *fleet.Logs) *ddqv1.NodeLogs {
	if l == nil {
		return nil
	}
	logs := &ddqv1.NodeLogs{Level: LogLevels[l.Level], UntilUnixMs: UnixMillis(l.Until)}
	for _, t := range l.Topics {
		logs.Topics = append(logs.Topics, &ddqv1.TopicLogs{Topic: t.Topic, UntilUnixMs: UnixMillis(t.Until)})
	}
	return logs
}

// ReadLogs takes what another node logs; nil of one of before.
func ReadLogs(l *ddqv1.NodeLogs) *fleet.Logs {
	if l == nil {
		return nil
	}
	logs := new(fleet.Logs)
	logs.Level, _ = ReadLogLevel(l.Level)
	if l.UntilUnixMs != 0 {
		logs.Until = store.Millis(l.UntilUnixMs).Time()
	}
	for _, t := range l.Topics {
		logs.Topics = append(logs.Topics, fleet.TopicLogs{Topic: t.Topic, Until: store.Millis(t.UntilUnixMs).Time()})
	}
	return logs
}
