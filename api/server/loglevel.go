package server

import (
	"math"
	"time"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/wire"
)

// logLevelOf reads what a node is asked to log.
func logLevelOf(level ddqv1.LogLevel, topic string, forMs int64) (fleet.LogLevel, error) {
	l := fleet.LogLevel{Topic: topic, For: time.Duration(min(max(forMs, -1), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond}
	if level == ddqv1.LogLevel_LOG_LEVEL_UNSPECIFIED {
		return l, nil
	}
	known, ok := wire.ReadLogLevel(level)
	if !ok {
		return l, wire.Invalid("BAD_ENUM", "level", "has no value %d", level)
	}
	l.Level = &known
	return l, nil
}
