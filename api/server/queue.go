package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/delivery"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// queue serves DelayQueueService.
type queue struct {
	ddqv1.UnsafeDelayQueueServiceServer
	*lifetime
	*interceptor
	service  *service.Service
	sessions *delivery.Sessions
	spans    delivery.Spans // nil: none
	log      *slog.Logger

	streamBytes int64         // see Config
	sendStall   time.Duration // see Config
}

var _ ddqv1.DelayQueueServiceServer = (*queue)(nil)

func (q *queue) GetTask(ctx context.Context, r *ddqv1.GetTaskRequest) (*ddqv1.GetTaskResponse, error) {
	found, err := q.service.Tasks.Get(ctx, r.Topic, r.Id)
	if err != nil {
		return nil, err
	}
	return &ddqv1.GetTaskResponse{Task: historyWire(&found)}, nil
}

func (q *queue) DeleteTask(ctx context.Context, r *ddqv1.DeleteTaskRequest) (*ddqv1.DeleteTaskResponse, error) {
	remove := q.service.Tasks.Delete
	if r.Force {
		remove = q.service.Tasks.ForceDelete
	}
	topic, err := remove(ctx, r.Topic, r.Id)
	if err != nil {
		return nil, err
	}
	return &ddqv1.DeleteTaskResponse{Topic: topic}, nil
}

// Retrieve is a long poll. What it cannot answer with it gives back: tasks over
// the size of a reply, and everything when the caller is gone.
func (q *queue) Retrieve(ctx context.Context, r *ddqv1.RetrieveRequest) (*ddqv1.RetrieveResponse, error) {
	options, wait, e := retrieveOptions(r)
	if e != nil {
		return nil, e
	}
	options.Client = delivery.ClientOf(ctx)
	poll, done := q.poll(ctx)
	defer done()
	held, err := q.service.Delivery.Retrieve(poll, options, max(1, int(r.MaxTasks)), wait)
	at := time.Now()
	if err != nil {
		return nil, q.pollError(ctx, err)
	}
	fit := max(min(1, len(held)), fitting(held, deliverySize, pageBytes))
	if ctx.Err() != nil {
		fit = 0
	}
	if fit < len(held) {
		q.giveBack(ctx, r.Topic, held[fit:])
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]delivery.Handed, fit)
	for i, d := range held[:fit] {
		out[i] = delivery.Handed{Delivery: d, At: at}
	}
	deliveries := delivery.Wire(out, at)
	if q.spans != nil {
		if end := q.spans.Begin(out, deliveries); end != nil {
			end(true) // the answer is written when this returns
		}
	}
	return &ddqv1.RetrieveResponse{Deliveries: deliveries, ServerTimeMs: delivery.ServerTime(out, at)}, nil
}

func retrieveOptions(r *ddqv1.RetrieveRequest) (o subscription.Options, wait time.Duration, e *problem.Error) {
	if r.MaxTasks < 0 {
		return o, 0, wire.Invalid("OUT_OF_RANGE_FIELD", "max_tasks", "must not be negative")
	}
	if wait, e = wire.Span(r.WaitMs, "wait_ms"); e != nil {
		return o, 0, e
	}
	o = subscription.Options{Topic: r.Topic, Worker: r.Worker}
	if o.Visibility, e = wire.Span(r.VisibilityTimeoutMs, "visibility_timeout_ms"); e != nil {
		return o, 0, e
	}
	return o, wait, nil
}

func deliverySize(d *subscription.Delivery) int { return wire.TaskSize(d.Task) }

// giveBack releases held tasks that nobody will get, also when the caller's
// context is done. If it fails their holds run out.
func (q *queue) giveBack(ctx context.Context, topic string, ds []subscription.Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	releases := make([]subscription.Settlement, len(ds))
	for i := range ds {
		releases[i] = delivery.Release(&ds[i])
	}
	if _, err := q.service.Delivery.Settle(ctx, topic, releases); err != nil {
		q.log.WarnContext(ctx, "tasks not given back", "topic", topic, "tasks", len(ds), "err", err)
	}
}

func (q *queue) Ack(ctx context.Context, r *ddqv1.AckRequest) (*ddqv1.AckResponse, error) {
	var next service.Nexts
	if delivery.BringsOn(r.Ack) {
		more, e := delivery.NextOf(ctx, r.Topic, r.Ack)
		if e != nil {
			return nil, e
		}
		next = service.Nexts{0: more}
	}
	s, err := q.settle(ctx, r.Topic, delivery.AckOf(r.Ack), next)
	if err != nil {
		return nil, err
	}
	return &ddqv1.AckResponse{Already: s.Already}, nil
}

func (q *queue) Nack(ctx context.Context, r *ddqv1.NackRequest) (*ddqv1.NackResponse, error) {
	ask, e := delivery.NackOf(r.Nack)
	if e != nil {
		return nil, e
	}
	s, err := q.settle(ctx, r.Topic, ask, nil)
	if err != nil {
		return nil, err
	}
	return nackResponse(s), nil
}

func (q *queue) Extend(ctx context.Context, r *ddqv1.ExtendRequest) (*ddqv1.ExtendResponse, error) {
	ask, e := delivery.ExtendOf(r.Extend)
	if e != nil {
		return nil, e
	}
	s, err := q.settle(ctx, r.Topic, ask, nil)
	if err != nil {
		return nil, err
	}
	return &ddqv1.ExtendResponse{HoldMs: s.HoldFor.Milliseconds(), CancelRequested: s.Cancelled}, nil
}

func (q *queue) Checkpoint(ctx context.Context, r *ddqv1.CheckpointRequest) (*ddqv1.CheckpointResponse, error) {
	s, err := q.settle(ctx, r.Topic, delivery.CheckpointOf(r.Checkpoint), nil)
	if err != nil {
		return nil, err
	}
	return &ddqv1.CheckpointResponse{Already: s.Already}, nil
}

func nackResponse(s subscription.Settled) *ddqv1.NackResponse {
	r := &ddqv1.NackResponse{State: wire.State(s.State)}
	if s.State != store.StateDead {
		r.ExecuteTime = wire.StampOrNil(s.Due)
	}
	return r
}

// Settle settles many holds, and answers those that the worker has to hear of.
func (q *queue) Settle(ctx context.Context, r *ddqv1.SettleRequest) (*ddqv1.SettleResponse, error) {
	if n := delivery.Count(r); n > delivery.MaxSettles {
		return nil, wire.Invalid("BATCH_SIZE", "acks", "nacks, extends and checkpoints are %d together, and at most %d", n, delivery.MaxSettles)
	}
	ask, settled, next := delivery.Settlements(ctx, r.Topic, r)
	if len(ask) > 0 {
		done, err := q.service.Delivery.SettleNext(ctx, r.Topic, ask, next)
		if err != nil {
			return nil, err
		}
		settled = append(settled, done...)
	}
	return &ddqv1.SettleResponse{Results: delivery.Results(q.log, settled)}, nil
}

// settle settles one hold.
func (q *queue) settle(ctx context.Context, topic string, ask subscription.Settlement, next service.Nexts) (subscription.Settled, error) {
	settled, err := q.service.Delivery.SettleNext(ctx, topic, []subscription.Settlement{ask}, next)
	if err != nil {
		return subscription.Settled{}, err
	}
	if settled[0].Err != nil {
		return subscription.Settled{}, settled[0].Err
	}
	return settled[0], nil
}

func (q *queue) Subscribe(stream delivery.Stream) error { return q.sessions.Serve(stream) }
