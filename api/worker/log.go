package worker

import (
	"context"
	"log/slog"
	"time"
)

// warnings is a handler that lets through what is a warning or worse.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

func (w warnings) WithGroup(name string) slog.Handler {
	return warnings{w.Handler.WithGroup(name)}
}

// remindEvery is how often a worker without a server says so again.
const remindEvery = 10 * time.Second

// interruption is that a subscription has no stream. It is logged when it begins, now and
// then, and when it ends: not at every attempt to connect, and not for each of many streams
// that break at once.
type interruption struct {
	said time.Time // when somebody was warned
	open bool      // who was warned waits for the end
}

// level returns how much is made of one more failed attempt, which would be logged at usual.
func (i *interruption) level(usual slog.Level, now time.Time) slog.Level {
	switch {
	case usual < slog.LevelWarn:
		return usual
	case now.Sub(i.said) < remindEvery:
		return slog.LevelDebug
	}
	i.said, i.open = now, true
	return usual
}

// over returns how much is made of the stream that ends it.
func (i *interruption) over() slog.Level {
	warned := i.open
	i.open = false
	if warned {
		return slog.LevelWarn // who saw the warning should see its end
	}
	return slog.LevelInfo
}
