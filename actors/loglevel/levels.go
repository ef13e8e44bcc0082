package loglevel

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// MostTopics is for how many topics at a time the lines of tasks can be asked for.
const MostTopics = 100

// ErrTooManyTopics is that of a topic beyond MostTopics.
var ErrTooManyTopics = errors.New("the lines of tasks are asked for of too many topics")

// Levels are what a node logs. It has no goroutine: what has ended is found by the next look.
type Levels struct {
	configured slog.Handler

	mu     sync.Mutex                           // held to change what follows
	node   atomic.Pointer[override]             // nil: as configured
	topics atomic.Pointer[map[string]time.Time] // until when; nil: none. A map is not changed
}

// override is a level in place of the configured one.
type override struct {
	level slog.Level
	until time.Time
}

// Of returns the levels of a logger that Logger returned; any other gets its own.
func Of(log *slog.Logger) *Levels {
	if h, ok := log.Handler().(handler); ok {
		return h.levels
	}
	return &Levels{configured: log.Handler()}
}

// Logger returns the logger whose level this is.
func (l *Levels) Logger() *slog.Logger { return slog.New(handler{l.configured, l}) }

// Set has the node log from a level on until a moment.
func (l *Levels) Set(level slog.Level, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node.Store(&override{level, until})
}

// Reset has the node log as it was configured.
func (l *Levels) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node.Store(nil)
}

// SetTopic has the node write the lines of a topic's tasks until a moment.
func (l *Levels) SetTopic(topic string, until time.Time) error {
	return l.change(func(topics map[string]time.Time) error {
		if _, there := topics[topic]; !there && len(topics) >= MostTopics {
			return ErrTooManyTopics
		}
		topics[topic] = until
		return nil
	})
}

// ResetTopic takes back SetTopic.
func (l *Levels) ResetTopic(topic string) {
	_ = l.change(func(topics map[string]time.Time) error { // it returns none
		delete(topics, topic)
		return nil
	})
}

// Level is from where on the node logs, and until when that was set; the zero time: as it was
// configured. A node that logs nothing has a level above Error.
func (l *Levels) Level() (slog.Level, time.Time) {
	if o := l.node.Load(); o != nil && time.Now().Before(o.until) {
		return o.level, o.until
	}
	level := slog.LevelDebug
	for level <= slog.LevelError && !l.configured.Enabled(context.Background(), level) {
		level += slog.LevelInfo - slog.LevelDebug
	}
	return level, time.Time{}
}

// Topics are those of which lines are written, and until when.
func (l *Levels) Topics() map[string]time.Time {
	topics, now := make(map[string]time.Time), time.Now()
	if asked := l.topics.Load(); asked != nil {
		maps.Copy(topics, *asked)
		maps.DeleteFunc(topics, func(_ string, until time.Time) bool { return !now.Before(until) })
	}
	return topics
}

// change changes the topics, without those that have ended.
func (l *Levels) change(do func(topics map[string]time.Time) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	topics := l.Topics()
	if err := do(topics); err != nil {
		return err
	}
	if len(topics) == 0 {
		l.topics.Store(nil)
	} else {
		l.topics.Store(&topics)
	}
	return nil
}

// ofTasks reports whether lines are written of the tasks of a topic.
func (l *Levels) ofTasks(ctx context.Context, topic string) bool {
	if topics := l.topics.Load(); topics != nil {
		if until, asked := (*topics)[topic]; asked {
			if time.Now().Before(until) {
				return true
			}
			l.ResetTopic(topic)
		}
	}
	return l.enabled(ctx, l.configured, slog.LevelDebug)
}

// enabled reports whether the node logs a level; configured is that of its handler.
func (l *Levels) enabled(ctx context.Context, configured slog.Handler, level slog.Level) bool {
	if o := l.node.Load(); o != nil {
		if time.Now().Before(o.until) {
			return level >= o.level
		}
		l.node.CompareAndSwap(o, nil)
	}
	return configured.Enabled(ctx, level)
}

// handler is the configured one at another level.
type handler struct {
	slog.Handler
	levels *Levels
}

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.levels.enabled(ctx, h.Handler, level)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.levels}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.levels}
}
