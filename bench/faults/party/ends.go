package party

import (
	"context"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// end cancels a task, or waits for its end, and writes down what the server says.
func (p *producer) end(ctx context.Context, t *plan.Task, e *plan.End) {
	call := ledger.Event{Op: ledger.Wait, Topic: t.Topic, Task: t.ID}
	if e.Cancel {
		call.Op, call.Final = ledger.Cancel, e.OrDelete
	}
	p.call(call, func() (ledger.Event, error) {
		if e.Cancel {
			out, err := p.client.Cancel(ctx, t.Topic, t.ID, client.CancelOptions{Wait: e.Wait, OrDelete: e.OrDelete})
			return ledger.Event{Outcome: out.Outcome.String()}, err
		}
		s, err := p.client.Wait(ctx, t.Topic, t.ID, e.Wait)
		answer := ledger.Event{}
		if err == nil {
			answer.State, answer.Version = s.State.String(), s.Version
		}
		if s.State == client.StateDone {
			answer.Output = tap.Sum(s.Result)
		}
		return answer, err
	})
}
