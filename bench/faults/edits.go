package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

// plannedEdit is a change of a task that waits, or does no more.
type plannedEdit struct {
	at          time.Duration
	op          ledger.Op
	payload     []byte        // nil: stays
	moved       time.Duration // the new due time, 0: stays
	priority    int           // -1: stays
	conditional bool          // on the version that was heard of last
}

// planEdits plans one to four edits of a task, half of them close to the instant at which it
// is due.
func (t *planned) planEdits(r *rand.Rand) {
	wait := t.due - t.send
	for range 1 + r.IntN(4) {
		e := plannedEdit{op: ledger.Update, priority: -1, conditional: r.IntN(4) == 0}
		e.at = t.send + time.Duration(r.Int64N(int64(wait)*5/4+1))
		if r.IntN(2) == 0 {
			e.at = t.due + time.Duration(r.Int64N(int64(40*time.Millisecond))) - 20*time.Millisecond
		}
		later := max(t.due, e.at) + time.Duration(r.Int64N(int64(time.Second)))
		switch r.IntN(6) {
		case 0:
			e.op = ledger.Promote
		case 1:
			e.op, e.moved = ledger.Reschedule, later
		case 2:
			e.moved, e.payload = later, payload(r, 64)
		case 3:
			e.priority = r.IntN(10)
		default:
			e.payload = payload(r, 64)
		}
		t.edits = append(t.edits, e)
	}
}

// edit makes an edit and writes it down.
func (p *producer) edit(ctx context.Context, t *planned, e *plannedEdit) {
	call := ledger.Event{Op: e.op, Topic: t.topic, Task: t.id}
	if e.conditional {
		call.IfVersion = p.seen.of(t.id)
	}
	change := client.Change{Payload: e.payload, IfVersion: call.IfVersion}
	if e.payload != nil {
		call.Sum = tap.Sum(e.payload)
	}
	when := client.When{Due: p.at(e.moved)}
	if e.moved != 0 {
		call.Due, change.When = when.Due.UnixMilli(), &when
	}
	if e.priority >= 0 {
		change.Priority = &e.priority
	}
	p.call(call, func() (ledger.Event, error) {
		r, err := p.makeEdit(ctx, t, e.op, change)
		p.seen.note(t.id, max(r.Version, versionIn(err)))
		return edition(r), err
	})
}

func (p *producer) makeEdit(ctx context.Context, t *planned, op ledger.Op, to client.Change) (client.Receipt, error) {
	switch op {
	case ledger.Promote:
		return p.client.PromoteTask(ctx, t.topic, t.id, to.IfVersion)
	case ledger.Reschedule:
		return p.client.RescheduleIf(ctx, t.topic, t.id, *to.When, to.IfVersion)
	}
	return p.client.UpdateTask(ctx, t.topic, t.id, to)
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

// bulk is a call about all tasks whose ids begin alike.
type bulk struct {
	prefix string
	ids    []string
	at     time.Duration
	op     ledger.Op
	moved  time.Duration
}

// bulkTasks is how many tasks have a call in common.
const bulkTasks = 5

// groupAttribute is the attribute by which such tasks are found, when it is not by how
// their ids begin. It is indexed.
const groupAttribute = "group"

// bulkOf is how the id of a task begins that is to be changed with others; empty for one that is not.
func bulkOf(c *partyConfig, i int) string {
	name := fmt.Sprintf("%s-b%d-", c.Name, i/bulkTasks)
	if int(draw(c.Seed, name, "bulk")%1000) >= c.Mix.Bulk {
		return ""
	}
	return name
}

// bulksOf are the calls about many tasks of a plan.
func bulksOf(tasks []planned) []bulk {
	found := map[string]*bulk{}
	for _, t := range tasks {
		cut := strings.LastIndexByte(t.id, '-') + 1
		if strings.Count(t.id, "-") != 2 {
			continue
		}
		b := found[t.id[:cut]]
		if b == nil {
			b = &bulk{prefix: t.id[:cut]}
			found[b.prefix] = b
		}
		b.ids = append(b.ids, t.id)
		b.at = max(b.at, t.send+time.Duration(50+draw(0, b.prefix, "at")%550)*time.Millisecond) // some are due then
	}
	var all []bulk
	for _, b := range found {
		b.op = ledger.Delete
		if draw(0, b.prefix, "op")%2 == 0 {
			b.op, b.moved = ledger.Reschedule, b.at+time.Second
		}
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b bulk) int { return cmp.Compare(a.prefix, b.prefix) })
	return all
}

// changeMany deletes or moves what a filter matches. The answer is a number: which of
// the tasks were changed is known when it is all of them, or none.
func (p *producer) changeMany(ctx context.Context, b *bulk) {
	due := p.at(b.moved)
	events := make([]ledger.Event, len(b.ids))
	for i, id := range b.ids {
		events[i] = ledger.Event{Kind: ledger.Call, Op: b.op, Call: p.log.NextCall(), Topic: plain, Task: id, Group: b.prefix}
		if b.op == ledger.Reschedule {
			events[i].Due = due.UnixMilli()
		}
	}
	p.log.Append(events...)
	ctx, cancel := context.WithTimeout(ctx, p.c.Giving)
	defer cancel()
	filter := client.Filter{IDPrefix: b.prefix}
	if draw(0, b.prefix, "filter")%2 == 0 {
		filter = client.Filter{Attributes: map[string]string{groupAttribute: b.prefix}}
	}
	var done client.Progress
	var err error
	if b.op == ledger.Delete {
		done, err = p.client.DeleteTasks(ctx, plain, filter, client.Bulk{})
	} else {
		done, err = p.client.RescheduleTasks(ctx, plain, filter, client.Shift{When: &client.When{Due: due}}, client.Bulk{})
	}
	for i := range events {
		e := &events[i]
		e.Kind, e.Changed = ledger.Answer, done.Changed
		switch {
		case err == nil && int(done.Changed) == len(b.ids):
			e.Result = ledger.OK
		case err == nil && done.Changed == 0:
			e.Result, e.Reason = ledger.Refused, "SKIPPED"
		case err == nil:
			e.Result, e.Reason = ledger.Unknown, fmt.Sprintf("%d of %d changed", done.Changed, len(b.ids))
		default:
			// What was done before a failure is done; a refusal may have come midway.
			if e.Result, e.Reason = tap.Outcome(err); e.Reason != tap.NotConnected {
				e.Result = ledger.Unknown
			}
		}
	}
	p.log.Append(events...)
}
