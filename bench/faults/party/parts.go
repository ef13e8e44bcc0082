package party

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
)

// parts spends time on a task, and does its parts, if it has some: the first before, and the
// others after that, beside each other. An idempotency key may pass from task to task, so
// such a task has none.
func (h *hands) parts(ctx context.Context, t worker.Task, took time.Duration) error {
	parts := plan.Parts(h.c.Seed, t.ID)
	if len(parts) == 0 || t.IdempotencyKey != "" {
		return h.spend(ctx, took)
	}
	if err := h.once(ctx, t, parts[0]); err != nil {
		return err
	}
	if err := h.spend(ctx, took); err != nil {
		return err
	}
	rest := make(chan error, len(parts)-1)
	for _, part := range parts[1:] {
		go func() { rest <- h.once(ctx, t, part) }()
	}
	var failed error
	for range cap(rest) {
		if err := <-rest; err != nil {
			failed = err
		}
	}
	return failed
}

// once does a part of a task, and writes down that it does.
func (h *hands) once(ctx context.Context, t worker.Task, part string) error {
	_, err := t.Once(ctx, part, func(context.Context) ([]byte, error) {
		h.log.Append(ledger.Event{
			Kind: ledger.Ran, Topic: t.Topic, Task: t.ID, Attempt: t.Attempt, Token: hex.EncodeToString(t.HoldToken), Name: part,
		})
		return fmt.Append(nil, part, " in attempt ", t.Attempt), nil
	})
	return err
}
