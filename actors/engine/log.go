package engine

import (
	"context"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// New returns an engine that logs little, and gives late each message that finds no
// actor.
func New(log *slog.Logger, late func(message any)) *actor.ActorSystem {
	engine := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(quietHandler{log.Handler()})
	}))
	engine.EventStream.Subscribe(func(event any) {
		if lost, ok := event.(*actor.DeadLetterEvent); ok {
			late(actor.UnwrapEnvelopeMessage(lost.Message))
		}
	})
	return engine
}

// quietHandler passes the actor library's log on, one level lower: what matters
// of it we log ourselves.
type quietHandler struct{ slog.Handler }

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, slog.LevelDebug)
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(a)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
