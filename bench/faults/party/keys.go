package party

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// keyWindow is how long the keys of rounds are taken that have a window: longer than any
// clock is set ahead.
const keyWindow = 48 * time.Hour

// enqueueKeyed makes one try, and writes it down.
func (p *producer) enqueueKeyed(ctx context.Context, k *plan.Keyed) {
	task := client.Task{
		Topic: plan.Plain, Payload: k.Payload, Due: p.at(k.Due), OrderingKey: k.Order,
		Idempotency: &client.Idempotency{Key: k.Key, OnConflict: k.Conflict},
	}
	if k.Conflict != client.ConflictReplace {
		task.Idempotency.Window = keyWindow
	}
	call := ledger.Event{
		Op: ledger.Enqueue, Topic: plan.Plain, Task: ledger.KeyTask(k.Key), Due: task.Due.UnixMilli(), Sum: tap.Sum(k.Payload),
		Conflict: k.Conflict.String(), Order: k.Order,
	}
	p.call(call, func() (ledger.Event, error) {
		results, err := p.client.EnqueueBatch(ctx, []client.Task{task})
		if len(results) == 0 {
			return ledger.Event{}, err
		}
		r := results[0]
		var refusal *client.Error
		switch {
		case errors.As(r.Err, &refusal):
			return ledger.Event{ID: refusal.ID}, r.Err
		case r.Err != nil:
			return ledger.Event{}, r.Err
		}
		answer := ledger.Event{Due: tap.Millis(r.Due), ID: r.ID, Reason: r.Key.String()}
		if r.Key == client.KeyReturned {
			answer.Result = ledger.Already
		}
		return answer, nil
	})
}
