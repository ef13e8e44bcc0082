package fleet

import (
	"log/slog"
	"time"
)

// LogLevel is from where on a node is to log.
type LogLevel struct {
	// Level is nil when the node is to log as it was configured.
	Level *slog.Level

	// Topic is the one of which each thing that happens to a task is logged; empty: the level is
	// for everything that the node logs.
	Topic string

	// For is how long it lasts.
	For time.Duration
}

// Logs are what a node logs now.
type Logs struct {
	Level  slog.Level
	Until  time.Time   // of a level that was set; zero: as it was configured
	Topics []TopicLogs // of which what happens to tasks is logged, by name
}

// TopicLogs is a topic of which each thing that happens to a task is logged.
type TopicLogs struct {
	Topic string
	Until time.Time
}
