package sender

import (
	"context"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Unary sends each call by itself.
type Unary struct {
	Queue ddqv1.DelayQueueServiceClient
}

// Send answers every request of k before it returns.
func (u *Unary) Send(ctx context.Context, k *Call) {
	if !k.until.IsZero() {
		defer k.timer.Stop()
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, k.until)
		defer cancel()
	}
	if len(k.requests) == 1 {
		k.Answers[0] = u.one(ctx, &k.requests[0].Wire)
		return
	}
	frames, p := frameMaker{}, part{call: k, n: len(k.requests)}
	for p.n > 0 {
		frames.request.Tasks, frames.parts = frames.request.Tasks[:0], frames.parts[:0]
		n := frames.take(&p, new(int))
		u.batch(ctx, frames.request.Tasks, k.Answers[p.from:p.from+n])
		p.from, p.n = p.from+n, p.n-n
	}
}

func (u *Unary) one(ctx context.Context, r *ddqv1.EnqueueRequest) Answer {
	reply, err := u.Queue.Enqueue(ctx, r)
	if err != nil {
		return Answer{Err: err}
	}
	return Answer{Result: &ddqv1.EnqueueResult{
		Id:            reply.GetId(),
		ExecuteTime:   reply.GetExecuteTime(),
		Deduplicated:  reply.GetDeduplicated(),
		ReplacedState: reply.GetReplacedState(),
	}}
}

func (u *Unary) batch(ctx context.Context, tasks []*ddqv1.EnqueueRequest, answers []Answer) {
	reply, err := u.Queue.EnqueueBatch(ctx, &ddqv1.EnqueueBatchRequest{Tasks: tasks})
	for i := range answers {
		switch {
		case err != nil:
			answers[i] = Answer{Err: err}
		case i < len(reply.GetResults()):
			answers[i] = Answer{Result: reply.GetResults()[i]}
		}
	}
}

// Close does nothing: no call outlives its Send.
func (u *Unary) Close(context.Context) {}
