package server

import (
	"log/slog"

	"github.com/ddq-io/ddq/api/wire"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

// batch is a frame of enqueue requests on its way in and its answers on their
// way out. Items that the wire rules already refuse never reach a use case.
type batch struct {
	tasks   []service.NewTask
	refused []*problem.Error // nil when none is; else one entry for each item
}

// newBatch converts requests. It makes one slice for all tasks and one for all
// attributes: this is the hottest path of the server.
func newBatch(requests []*ddqv1.EnqueueRequest, may mayEnqueue) batch {
	b := batch{tasks: make([]service.NewTask, 0, len(requests))}
	attributes := make([]store.Attribute, 0, countAttributes(requests))
	for i, r := range requests {
		b.tasks = b.tasks[:len(b.tasks)+1]
		e := may.check(r.GetTopic())
		if e == nil {
			attributes, e = convertTask(&b.tasks[len(b.tasks)-1], r, attributes)
		}
		if e == nil {
			continue
		}
		b.tasks[len(b.tasks)-1] = service.NewTask{}
		b.tasks = b.tasks[:len(b.tasks)-1]
		if b.refused == nil {
			b.refused = make([]*problem.Error, len(requests))
		}
		b.refused[i] = e
	}
	return b
}

func countAttributes(requests []*ddqv1.EnqueueRequest) int {
	n := 0
	for _, r := range requests {
		n += len(r.Attributes)
	}
	return n
}

// convertTask writes r into t, which is zero. The attributes go to the end of slab.
func convertTask(t *service.NewTask, r *ddqv1.EnqueueRequest, slab []store.Attribute) ([]store.Attribute, *problem.Error) {
	t.Topic, t.Task.MaxRetries = r.Topic, -1
	if e := convertTimes(t, r); e != nil {
		return slab, e
	}
	if r.MaxRetries != nil {
		if *r.MaxRetries < 0 { // -1 would mean the topic's
			return slab, wire.Invalid("OUT_OF_RANGE_FIELD", "max_retries", "must not be negative")
		}
		t.Task.MaxRetries = int(*r.MaxRetries)
	}
	slab, e := wire.ReadContents(&t.Task, r, slab)
	if e != nil {
		return slab, e
	}
	t.Task.Key, e = idempotencyOf(r.Idempotency)
	return slab, e
}

// convertTimes converts when the task is due and when it expires.
func convertTimes(t *service.NewTask, r *ddqv1.EnqueueRequest) (e *problem.Error) {
	switch when := r.When.(type) {
	case *ddqv1.EnqueueRequest_Delay:
		t.When.Delay, e = wire.Delay(when.Delay, "delay")
	case *ddqv1.EnqueueRequest_ExecuteTime:
		t.When.At, e = wire.Instant(when.ExecuteTime, "execute_time")
	}
	if e != nil {
		return e
	}
	switch spread := r.Spread.(type) {
	case *ddqv1.EnqueueRequest_LatestTime:
		t.Latest, e = wire.Instant(spread.LatestTime, "latest_time")
	case *ddqv1.EnqueueRequest_Slack:
		t.Slack, e = wire.Delay(spread.Slack, "slack")
	}
	if e != nil {
		return e
	}
	switch expiry := r.Expiry.(type) {
	case *ddqv1.EnqueueRequest_ExpireTime:
		t.Task.Expires, e = wire.Instant(expiry.ExpireTime, "expire_time")
	case *ddqv1.EnqueueRequest_ExpireAfter:
		t.ExpireAfter, e = wire.Delay(expiry.ExpireAfter, "expire_after")
		if e == nil && t.ExpireAfter == 0 { // 0 would mean never
			e = wire.Invalid("BAD_DELAY", "expire_after", "must be longer than 0")
		}
	}
	return e
}

// results answers each request, from what the use case said of those it got.
func (b batch) results(log *slog.Logger, done []service.Enqueued) []*ddqv1.EnqueueResult {
	n := max(len(done), len(b.refused))
	out := make([]*ddqv1.EnqueueResult, n)
	slab := make([]ddqv1.EnqueueResult, n)
	stamps := make([]timestamppb.Timestamp, n)
	for i := range out {
		out[i] = &slab[i]
		if b.refused != nil && b.refused[i] != nil {
			slab[i].Error = itemError(log, b.refused[i])
			continue
		}
		d := &done[0]
		done = done[1:]
		slab[i].Id = wire.Text(d.ID)
		if d.Err != nil {
			slab[i].Error = itemError(log, d.Err)
			continue
		}
		slab[i].ExecuteTime = wire.Stamp(&stamps[i], d.Due)
		slab[i].Deduplicated = d.Deduplicated
		slab[i].ReplacedState = stateWire(d.Replaced)
		slab[i].IdempotencyOutcome = keyOutcomeToWire[d.Key]
	}
	return out
}
