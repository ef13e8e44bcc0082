package client

import (
	"context"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// unary sends each call by itself.
type unary struct {
	queue ddqv1.DelayQueueServiceClient
}

// send answers every request of k before it returns.
func (u *unary) send(ctx context.Context, k *call) {
	if !k.until.IsZero() {
		defer k.timer.Stop()
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, k.until)
		defer cancel()
	}
	if len(k.requests) == 1 {
		k.answers[0] = u.one(ctx, &k.requests[0].wire)
		return
	}
	frames, p := frameMaker{}, part{call: k, n: len(k.requests)}
	for p.n > 0 {
		frames.request.Tasks, frames.parts = frames.request.Tasks[:0], frames.parts[:0]
		n := frames.take(&p, new(int))
		u.batch(ctx, frames.request.Tasks, k.answers[p.from:p.from+n])
		p.from, p.n = p.from+n, p.n-n
	}
}

func (u *unary) one(ctx context.Context, r *ddqv1.EnqueueRequest) answer {
	reply, err := u.queue.Enqueue(ctx, r)
	if err != nil {
		return answer{err: fromRPC(err)}
	}
	return answer{result: &ddqv1.EnqueueResult{
		Id:            reply.GetId(),
		ExecuteTime:   reply.GetExecuteTime(),
		Deduplicated:  reply.GetDeduplicated(),
		ReplacedState: reply.GetReplacedState(),
	}}
}

func (u *unary) batch(ctx context.Context, tasks []*ddqv1.EnqueueRequest, answers []answer) {
	reply, err := u.queue.EnqueueBatch(ctx, &ddqv1.EnqueueBatchRequest{Tasks: tasks})
	for i := range answers {
		switch {
		case err != nil:
			answers[i] = answer{err: fromRPC(err)}
		case i < len(reply.GetResults()):
			answers[i] = answer{result: reply.GetResults()[i]}
		}
	}
}

func (u *unary) close(context.Context) {}
