package party

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/tap"
)

const (
	// frame is how often a producer looks what is to be sent.
	frame = 10 * time.Millisecond
	// batchTasks is the most tasks it sends in one call.
	batchTasks = 250
	// calls is how many it makes at a time; more wait.
	calls = 128
	// again is the pause before a call that was not answered OK is repeated.
	again = 150 * time.Millisecond
	// margin is how long before its due time a task is enqueued at the latest: a
	// repeat after it was acked would rightly make a new task.
	margin = 200 * time.Millisecond
)

// producer plays a plan and writes down each call and its answer. It repeats by itself
// what the SDK would, so that every request on the wire is in the ledger. It owns a
// goroutine for each call under way.
type producer struct {
	c      *Config
	client *client.Client
	log    *ledger.Writer
	room   chan struct{}
	wait   sync.WaitGroup
	seen   versions
}

// produce returns when its plan, and those of the producers beside it, are played and every call is
// over.
func produce(ctx context.Context, c *Config, log *ledger.Writer, _ io.Reader) (err error) {
	cl, err := client.Dial(c.Addr, client.Config{MaxElapsed: -1, Timeout: c.Giving})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	var all sync.WaitGroup
	for _, name := range append([]string{c.Name}, c.Beside...) {
		own := *c
		own.Name = name
		p := &producer{c: &own, client: cl, log: log, room: make(chan struct{}, calls)}
		all.Go(func() { p.play(ctx) })
	}
	all.Wait()
	return nil
}

// play returns when the plan is played and every call is over, or ctx ends.
func (p *producer) play(ctx context.Context) {
	defer p.wait.Wait()
	tick := time.NewTicker(frame)
	defer tick.Stop()
	tasks := plan.Tasks(&p.c.Config)
	for _, b := range plan.Bulks(tasks) {
		p.when(ctx, b.At, func() { p.changeMany(ctx, &b) })
	}
	for _, k := range plan.Keys(&p.c.Config) {
		p.when(ctx, k.At, func() { p.enqueueKeyed(ctx, &k) })
	}
	p.takeOften(ctx)
	for len(tasks) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tasks = p.send(ctx, tasks)
	}
}

// send starts the calls whose time has come and returns the tasks that are left.
func (p *producer) send(ctx context.Context, tasks []plan.Task) []plan.Task {
	now := time.Since(p.c.Start)
	n := 0
	for n < len(tasks) && n < batchTasks && tasks[n].Send <= now {
		n++
	}
	if n == 0 {
		return tasks
	}
	batch := tasks[:n]
	p.begin(ctx, func() { p.enqueue(ctx, batch) })
	for i := range batch {
		t := &batch[i]
		if t.Change > 0 {
			p.when(ctx, t.Change, func() { p.change(ctx, t) })
		}
		for k := range t.Ends {
			p.when(ctx, t.Ends[k].At, func() { p.end(ctx, t, &t.Ends[k]) })
		}
		for k := range t.Edits {
			p.when(ctx, t.Edits[k].At, func() { p.edit(ctx, t, &t.Edits[k]) })
		}
	}
	return tasks[n:]
}

// begin runs a call as soon as there is room for it.
func (p *producer) begin(ctx context.Context, call func()) {
	select {
	case p.room <- struct{}{}:
	case <-ctx.Done():
		return
	}
	p.wait.Go(func() {
		defer func() { <-p.room }()
		call()
	})
}

// when does something when its time has come.
func (p *producer) when(ctx context.Context, at time.Duration, do func()) {
	p.wait.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(p.c.Start.Add(at))):
			do()
		}
	})
}

// change deletes a task, moves it, or sends it again.
func (p *producer) change(ctx context.Context, t *plan.Task) {
	switch t.Fate {
	case plan.Deleted:
		p.call(ledger.Event{Op: ledger.Delete, Topic: t.Topic, Task: t.ID}, func() (ledger.Event, error) {
			_, err := p.client.Delete(ctx, t.Topic, t.ID)
			return ledger.Event{}, err
		})
	case plan.Rescheduled:
		due := p.at(t.Moved)
		p.call(ledger.Event{Op: ledger.Reschedule, Topic: t.Topic, Task: t.ID, Due: due.UnixMilli()}, func() (ledger.Event, error) {
			r, err := p.client.Reschedule(ctx, t.Topic, t.ID, client.When{Due: due})
			return edition(r), err
		})
	case plan.Twice:
		if t.Due-t.Change > margin {
			p.begin(ctx, func() { p.enqueue(ctx, []plan.Task{*t}) })
		}
	}
}

// at is a moment of the plan, as a due time.
func (p *producer) at(d time.Duration) time.Time {
	return p.c.Start.Add(d).Truncate(time.Millisecond)
}

// enqueue sends tasks until each was answered OK or is almost due.
func (p *producer) enqueue(ctx context.Context, batch []plan.Task) {
	for {
		batch = p.try(ctx, batch)
		if len(batch) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
		var left []plan.Task
		for _, t := range batch {
			if p.at(t.Due).After(time.Now().Add(margin)) {
				left = append(left, t)
			}
		}
		batch = left
	}
}

// try makes one call and returns the tasks that were not answered OK.
func (p *producer) try(ctx context.Context, batch []plan.Task) (rest []plan.Task) {
	tasks := make([]client.Task, len(batch))
	events := make([]ledger.Event, len(batch))
	for i, t := range batch {
		due := p.at(t.Due)
		tasks[i] = client.Task{
			Topic: t.Topic, ID: t.ID, Payload: t.Payload, Due: due, Priority: t.Priority, FairnessKey: t.Fairness,
			RateKey: t.Key, ConcurrencyKey: t.Key, Slack: t.Slack,
		}
		if t.Group != "" {
			tasks[i].Attributes = map[string]string{plan.GroupAttribute: t.Group}
		}
		events[i] = ledger.Event{
			Kind: ledger.Call, Op: ledger.Enqueue, Call: p.log.NextCall(),
			Topic: t.Topic, Task: t.ID, Due: due.UnixMilli(), Sum: tap.Sum(t.Payload), Key: t.Key,
		}
		if tag := plan.TagOf(p.c.Seed, t.Topic, t.ID); tag != "" {
			tasks[i].Attributes, events[i].Tag = map[string]string{plan.TagAttribute: tag}, tag
		}
		if t.Slack > 0 {
			events[i].Latest = due.Add(t.Slack).UnixMilli()
		}
	}
	p.log.Append(events...)
	results, err := p.client.EnqueueBatch(ctx, tasks)
	for i := range events {
		e := ledger.Event{Kind: ledger.Answer, Op: ledger.Enqueue, Call: events[i].Call, Topic: events[i].Topic, Task: events[i].Task}
		switch {
		case i >= len(results): // the call failed as a whole
			e.Result, e.Reason = tap.Outcome(err)
		case results[i].Err != nil:
			e.Result, e.Reason = tap.Outcome(results[i].Err)
		case results[i].Deduplicated:
			e.Result, e.Due = ledger.Already, tap.Millis(results[i].Due)
		default:
			e.Result, e.Due = ledger.OK, tap.Millis(results[i].Due)
			if was := results[i].Replaced; was != client.StateUnknown {
				e.Replaced = was.String()
			}
		}
		if e.Due == 0 {
			rest = append(rest, batch[i])
		}
		events[i] = e
	}
	p.log.Append(events...)
	return rest
}

// call writes down a call about one task and what came of it.
func (p *producer) call(e ledger.Event, do func() (ledger.Event, error)) {
	e.Kind, e.Call = ledger.Call, p.log.NextCall()
	p.log.Append(e)
	answer, err := do()
	answer.Kind, answer.Call, answer.Op, answer.Topic, answer.Task = ledger.Answer, e.Call, e.Op, e.Topic, e.Task
	if answer.Result == "" {
		answer.Result = ledger.OK
	}
	if err != nil {
		answer.Result, answer.Reason = tap.Outcome(err)
		answer.Version = versionIn(err)
	}
	p.log.Append(answer)
}
