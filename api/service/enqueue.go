package service

import (
	"context"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/ddq-io/ddq/actors/engine"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/api/service/tenants"
)

// Enqueue stores tasks, of any topics, and answers each in order. The error is about the request as a whole. When ctx ends
// first, every task of the request is in doubt.
func (s *Tasks) Enqueue(ctx context.Context, tasks []NewTask) ([]Enqueued, error) {
	return s.EnqueueInParts(ctx, tasks, nil)
}

// EnqueueInParts is Enqueue for those who pass on what is decided while other tasks take long.
func (s *Tasks) EnqueueInParts(ctx context.Context, tasks []NewTask, parts *Parts) ([]Enqueued, error) {
	if err := s.checkBatch(tasks); err != nil {
		return nil, err
	}
	entry := s.tenants.Enter(ctx, len(tasks))
	defer entry.Leave()
	out, err := s.enqueueOnce(ctx, tasks, entry, parts)
	if err != nil {
		return nil, err
	}
	for range rerouteTries {
		missed := sealed(out)
		if len(missed) == 0 {
			break
		}
		parts.tell(out) // the others do not wait
		s.enqueueAgain(ctx, tasks, out, missed)
	}
	s.countEnqueued(out)
	s.countTracesCut(tasks)
	return out, nil
}

// enqueueAgain has tasks that went to sealed shards go to those that their topics have now. They have passed the quotas. What
// fails is theirs alone.
func (s *Tasks) enqueueAgain(ctx context.Context, tasks []NewTask, out []Enqueued, missed []int) {
	failed := make(map[string]*problem.Error) // by topic
	again, from := []NewTask(nil), missed[:0]
	for _, i := range missed {
		e, asked := failed[tasks[i].Topic]
		if !asked {
			e = problem.FromStore(s.node.Topics().RefreshSealed(ctx, tasks[i].Topic))
			failed[tasks[i].Topic] = e
		}
		if out[i].Err = e; e == nil {
			again, from = append(again, tasks[i]), append(from, i)
		}
	}
	if len(again) == 0 {
		return
	}
	results, err := s.enqueueOnce(ctx, again, nil, nil)
	for k, i := range from {
		if out[i].Err = problem.FromStore(err); err == nil {
			out[i] = results[k]
		}
	}
}

// Parts passes on what is decided of an enqueue while others of its tasks take long, as those of a shard
// do whose store does not answer.
type Parts struct {
	// Eager reports whether parts are passed on as they come, because others took long just now.
	Eager func() bool
	// Answer is called with what became of the tasks that are decided and were not before.
	Answer func(out []Enqueued, which []int)

	told []bool // nil: none
}

// tell passes on what is decided, but for what goes to another shard.
func (p *Parts) tell(out []Enqueued) {
	if p == nil {
		return
	}
	var which []int
	for i := range out {
		if atomic.LoadUint32(&out[i].decided) == 0 || p.told != nil && p.told[i] || out[i].sealed() {
			continue
		}
		which = append(which, i)
	}
	if len(which) == 0 {
		return
	}
	if p.told == nil {
		p.told = make([]bool, len(out))
	}
	for _, i := range which {
		p.told[i] = true
	}
	p.Answer(out, which)
}

// sealed are the tasks that went to a shard that takes no new ones.
func sealed(out []Enqueued) (missed []int) {
	for i := range out {
		if out[i].sealed() {
			missed = append(missed, i)
		}
	}
	return missed
}

func (e *Enqueued) sealed() bool { return e.Err != nil && e.Err.Reason == problem.ReasonSealed }

func (s *Tasks) enqueueOnce(ctx context.Context, tasks []NewTask, entry *tenants.Entry, parts *Parts) ([]Enqueued, error) {
	out := make([]Enqueued, len(tasks))
	done := make(chan struct{})
	call := shard.NewCountdown(len(tasks), func() { close(done) })
	var coming *engine.Parts
	if parts != nil {
		coming = engine.NewParts(parts.Eager())
		call.Step = coming.Step
	}
	r := s.route(ctx, tasks, out, call, entry)
	defer r.admission.Leave()
	coming.Wait(ctx, done, func() { parts.tell(out) })
	select {
	case <-done:
		r.former.clearLeftovers(ctx)
		return out, nil
	case <-ctx.Done():
		return nil, problem.AsError(ctx.Err()) // out is still written to
	}
}

// CheckBatch refuses a request of so many tasks, before anything is done for them.
func (s *Tasks) CheckBatch(n int) error {
	if n == 0 || n > s.limits.BatchTasks {
		return problem.BadField("tasks", "BATCH_SIZE", "%d tasks; 1 to %d are allowed", n, s.limits.BatchTasks)
	}
	return nil
}

func (s *Tasks) checkBatch(tasks []NewTask) error {
	if err := s.node.Serving(); err != nil {
		return err
	}
	if err := s.CheckBatch(len(tasks)); err != nil {
		return err
	}
	l, bytes := s.limits, 0
	for i := range tasks {
		bytes += len(tasks[i].Task.Payload)
	}
	if bytes > l.BatchBytes && len(tasks) > 1 {
		return problem.BadField("tasks", "BATCH_SIZE", "%d bytes of payload; at most %d are allowed", bytes, l.BatchBytes)
	}
	return nil
}

// route prepares each task and sends it to its shard, refusing what is not valid.
func (s *Tasks) route(ctx context.Context, tasks []NewTask, out []Enqueued, call *shard.Countdown, entry *tenants.Entry) *router {
	r := &router{
		node:      s.node,
		limits:    s.limits,
		now:       s.node.Clock().Now(),
		latest:    s.node.Clock().Latest(),
		digest:    xxhash.New(),
		former:    former{node: s.node, store: s.store},
		admission: admission{node: s.node},
		entry:     entry,
	}
	for i := range tasks {
		if err := r.add(ctx, &tasks[i], &out[i], call); err != nil {
			out[i].ID = tasks[i].Task.ID
			(*answer)(&out[i]).Refused(err)
			call.Finish(1)
		}
	}
	if len(r.former.doubts) > 0 {
		for _, d := range r.former.resolve(ctx, call) {
			r.place(d.task, d.out, d.batch, call)
		}
	}
	r.send()
	return r
}

func (s *Tasks) countEnqueued(out []Enqueued) {
	stored, again := 0, 0
	for i := range out {
		switch {
		case out[i].Deduplicated:
			again++
		case out[i].Err == nil:
			stored++
		}
	}
	s.node.Metrics().CountEnqueued(stored, again)
}

func (s *Tasks) countTracesCut(tasks []NewTask) {
	for i := range tasks {
		if tasks[i].TraceCut {
			s.node.Metrics().TracesCut.Inc()
		}
	}
}
