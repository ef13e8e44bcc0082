package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// keyWindow is how long the keys of rounds are taken that have a window: longer than any
// clock is set ahead.
const keyWindow = 48 * time.Hour

// orderingKeys is how many ordering keys the tasks share that have one.
const orderingKeys = 3

// keyed is an enqueue with an idempotency key. All producers enqueue the same keys.
type keyed struct {
	key      string
	order    string // its ordering key; empty: none
	at       time.Duration
	due      time.Duration
	conflict client.OnConflict
	payload  []byte
}

// planKeys plans the enqueues with idempotency keys of a producer.
func planKeys(c *partyConfig) []keyed {
	r := rand.New(rand.NewPCG(c.Seed, draw(c.Seed, c.Name, "keys")))
	n := int(c.Rate * c.For.Seconds() * float64(c.Mix.Key) / 1000)
	var all []keyed
	for i := range n {
		k := keyed{key: fmt.Sprintf("order-%d", i)}
		switch draw(c.Seed, k.key, "conflict") % 4 {
		case 0:
			k.conflict = client.ConflictReject
		case 1, 2:
			k.conflict = client.ConflictReplace
		default:
			k.conflict = client.ConflictReturn
		}
		if k.conflict != client.ConflictReplace {
			k.order = fmt.Sprint("account ", draw(c.Seed, k.key, "account")%orderingKeys)
		}
		k.at = c.For * time.Duration(i) / time.Duration(n)
		for range 1 + r.IntN(3) {
			k.at += time.Duration(r.Int64N(int64(400 * time.Millisecond)))
			k.due = k.at + 500*time.Millisecond
			k.payload = payload(r, 32)
			all = append(all, k)
		}
	}
	return all
}

// enqueueKeyed makes one try, and writes it down.
func (p *producer) enqueueKeyed(ctx context.Context, k *keyed) {
	task := client.Task{
		Topic: plain, Payload: k.payload, Due: p.at(k.due), OrderingKey: k.order,
		Idempotency: &client.Idempotency{Key: k.key, OnConflict: k.conflict},
	}
	if k.conflict != client.ConflictReplace {
		task.Idempotency.Window = keyWindow
	}
	call := ledger.Event{
		Op: ledger.Enqueue, Topic: plain, Task: ledger.KeyTask(k.key), Due: task.Due.UnixMilli(), Sum: tap.Sum(k.payload),
		Conflict: k.conflict.String(), Order: k.order,
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
