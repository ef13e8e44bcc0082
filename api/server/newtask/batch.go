package newtask

import (
	"log/slog"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/status"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
)

// KeyOutcome is what became of an idempotency key.
var KeyOutcome = [...]ddqv1.IdempotencyOutcome{
	service.KeyNone:     ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_UNSPECIFIED,
	service.KeyTook:     ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_ENQUEUED,
	service.KeyReturned: ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_RETURNED,
	service.KeyReplaced: ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_REPLACED,
	service.KeyPassed:   ddqv1.IdempotencyOutcome_IDEMPOTENCY_OUTCOME_BESIDE,
}

// Batch is a frame of enqueue requests on its way in and its answers on their
// way out. Items that the wire rules already refuse never reach a use case.
type Batch struct {
	Tasks   []service.NewTask
	Refused []*problem.Error // nil when none is; else one entry for each item
}

// NewBatch converts requests. It makes one slice for all tasks, one for all
// attributes and one for all trace contexts: this is the hottest path of the server.
func NewBatch(requests []*ddqv1.EnqueueRequest, may guard.Enqueue) Batch {
	b := Batch{Tasks: make([]service.NewTask, 0, len(requests))}
	room := RoomFor(requests)
	for i, r := range requests {
		b.Tasks = b.Tasks[:len(b.Tasks)+1]
		e := may.Check(r.GetTopic())
		if e == nil {
			e = room.Read(&b.Tasks[len(b.Tasks)-1], r)
		}
		if e == nil {
			continue
		}
		b.Tasks[len(b.Tasks)-1] = service.NewTask{}
		b.Tasks = b.Tasks[:len(b.Tasks)-1]
		if b.Refused == nil {
			b.Refused = make([]*problem.Error, len(requests))
		}
		b.Refused[i] = e
	}
	return b
}

// Results answers each request, from what the use case said of those it got.
func (b Batch) Results(log *slog.Logger, done []service.Enqueued) []*ddqv1.EnqueueResult {
	n := max(len(done), len(b.Refused))
	out := make([]*ddqv1.EnqueueResult, n)
	slab := make([]ddqv1.EnqueueResult, n)
	stamps := make([]timestamppb.Timestamp, n)
	for i := range out {
		out[i] = &slab[i]
		if b.Refused != nil && b.Refused[i] != nil {
			slab[i].Error = status.Item(log, b.Refused[i])
			continue
		}
		putResult(log, &slab[i], &stamps[i], &done[0])
		done = done[1:]
	}
	return out
}

// putResult answers one request.
func putResult(log *slog.Logger, r *ddqv1.EnqueueResult, stamp *timestamppb.Timestamp, d *service.Enqueued) {
	r.Id = wire.Text(d.ID)
	if d.Err != nil {
		r.Error = status.Item(log, d.Err)
		return
	}
	r.ExecuteTime = wire.Stamp(stamp, d.Due)
	r.Deduplicated = d.Deduplicated
	r.ReplacedState = wire.State(d.Replaced)
	r.IdempotencyOutcome = KeyOutcome[d.Key]
}

// Some answers those of the requests that are said by their places among the tasks, and where they
// stand among the requests; with refused, those too that never reached a use case.
func (b Batch) Some(log *slog.Logger, done []service.Enqueued, which []int, refused bool) (out []*ddqv1.EnqueueResult, at []uint32) {
	place, next := 0, 0 // among the tasks, in which
	for i := range max(len(b.Tasks), len(b.Refused)) {
		switch {
		case b.Refused != nil && b.Refused[i] != nil:
			if refused {
				out, at = append(out, &ddqv1.EnqueueResult{Error: status.Item(log, b.Refused[i])}), append(at, uint32(i))
			}
			continue
		case next < len(which) && which[next] == place:
			r := new(ddqv1.EnqueueResult)
			putResult(log, r, new(timestamppb.Timestamp), &done[place])
			out, at = append(out, r), append(at, uint32(i))
			next++
		}
		place++
	}
	return out, at
}
