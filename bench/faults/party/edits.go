package party

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// edit makes an edit and writes it down.
func (p *producer) edit(ctx context.Context, t *plan.Task, e *plan.Edit) {
	call := ledger.Event{Op: e.Op, Topic: t.Topic, Task: t.ID}
	if e.Conditional {
		call.IfVersion = p.seen.of(t.ID)
	}
	change := client.Change{Payload: e.Payload, IfVersion: call.IfVersion}
	if e.Payload != nil {
		call.Sum = tap.Sum(e.Payload)
	}
	when := client.When{Due: p.at(e.Moved)}
	if e.Moved != 0 {
		call.Due, change.When = when.Due.UnixMilli(), &when
	}
	if e.Priority >= 0 {
		change.Priority = &e.Priority
	}
	p.call(call, func() (ledger.Event, error) {
		r, err := p.makeEdit(ctx, t, e.Op, change)
		p.seen.note(t.ID, max(r.Version, versionIn(err)))
		return edition(r), err
	})
}

func (p *producer) makeEdit(ctx context.Context, t *plan.Task, op ledger.Op, to client.Change) (client.Receipt, error) {
	switch op {
	case ledger.Promote:
		return p.client.PromoteTask(ctx, t.Topic, t.ID, to.IfVersion)
	case ledger.Reschedule:
		return p.client.RescheduleIf(ctx, t.Topic, t.ID, *to.When, to.IfVersion)
	}
	return p.client.UpdateTask(ctx, t.Topic, t.ID, to)
}

// edition is what an accepted edit was answered with.
func edition(r client.Receipt) ledger.Event {
	return ledger.Event{Due: tap.Millis(r.Due), Version: r.Version}
}

// versionIn is the version that a refusal names, 0 for none.
func versionIn(err error) int64 {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Version
	}
	return 0
}

// versions are those of tasks, as far as was heard.
type versions struct {
	mu    sync.Mutex
	known map[string]int64 // guarded by mu
}

// of is 1 for a task that nothing was heard of.
func (v *versions) of(id string) int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(1, v.known[id])
}

func (v *versions) note(id string, version int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.known = map[string]int64{}
	}
	v.known[id] = max(v.known[id], version)
}

// changeMany deletes or moves what a filter matches. The answer is a number: which of
// the tasks were changed is known when it is all of them, or none.
func (p *producer) changeMany(ctx context.Context, b *plan.Bulk) {
	due := p.at(b.Moved)
	events := make([]ledger.Event, len(b.IDs))
	for i, id := range b.IDs {
		events[i] = ledger.Event{Kind: ledger.Call, Op: b.Op, Call: p.log.NextCall(), Topic: plan.Plain, Task: id, Group: b.Prefix}
		if b.Op == ledger.Reschedule {
			events[i].Due = due.UnixMilli()
		}
	}
	p.log.Append(events...)
	ctx, cancel := context.WithTimeout(ctx, p.c.Giving)
	defer cancel()
	filter := client.Filter{IDPrefix: b.Prefix}
	if plan.Draw(0, b.Prefix, "filter")%2 == 0 {
		filter = client.Filter{Attributes: map[string]string{plan.GroupAttribute: b.Prefix}}
	}
	var done client.Progress
	var err error
	if b.Op == ledger.Delete {
		done, err = p.client.DeleteTasks(ctx, plan.Plain, filter, client.Bulk{})
	} else {
		done, err = p.client.RescheduleTasks(ctx, plan.Plain, filter, client.Shift{When: &client.When{Due: due}}, client.Bulk{})
	}
	for i := range events {
		e := &events[i]
		e.Kind, e.Changed = ledger.Answer, done.Changed
		switch {
		case err == nil && int(done.Changed) == len(b.IDs):
			e.Result = ledger.OK
		case err == nil && done.Changed == 0:
			e.Result, e.Reason = ledger.Refused, "SKIPPED"
		case err == nil:
			e.Result, e.Reason = ledger.Unknown, fmt.Sprintf("%d of %d changed", done.Changed, len(b.IDs))
		default:
			// What was done before a failure is done; a refusal may have come midway.
			if e.Result, e.Reason = tap.Outcome(err); e.Reason != tap.NotConnected {
				e.Result = ledger.Unknown
			}
		}
	}
	p.log.Append(events...)
}
