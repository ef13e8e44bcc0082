package sender

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client/internal/conn"
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
	var at peer.Peer
	reply, err := u.Queue.Enqueue(ctx, r, grpc.Peer(&at))
	if err != nil {
		return Answer{Err: unanswered(err, &at)}
	}
	return Answer{Result: &ddqv1.EnqueueResult{
		Id:            reply.GetId(),
		ExecuteTime:   reply.GetExecuteTime(),
		Deduplicated:  reply.GetDeduplicated(),
		ReplacedState: reply.GetReplacedState(),

		IdempotencyOutcome: reply.GetIdempotencyOutcome(),
	}}
}

// batch sends tasks in one call, and in halves where that fails for what one of them may be.
func (u *Unary) batch(ctx context.Context, tasks []*ddqv1.EnqueueRequest, answers []Answer) {
	var at peer.Peer
	reply, err := u.Queue.EnqueueBatch(ctx, &ddqv1.EnqueueBatchRequest{Tasks: tasks}, grpc.Peer(&at))
	if half := len(tasks) / 2; half > 0 && err != nil && ofOne(err) && ctx.Err() == nil {
		u.batch(ctx, tasks[:half], answers[:half])
		u.batch(ctx, tasks[half:], answers[half:])
		return
	}
	for i := range answers {
		switch {
		case err != nil:
			answers[i] = Answer{Err: unanswered(err, &at)}
		case i < len(reply.GetResults()):
			answers[i] = Answer{Result: reply.GetResults()[i]}
		}
	}
}

// unanswered is the error of a call that failed with err. What a server was sent that answered
// nothing is in doubt.
func unanswered(err error, at *peer.Peer) error {
	var said *conn.Failure
	if at.Addr == nil || errors.As(err, &said) {
		return err
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Internal, codes.Unknown:
		return inDoubt(err)
	}
	return err
}

// ofOne reports whether a batch may have failed with err because of one of its tasks.
func ofOne(err error) bool {
	st := status.Convert(err)
	switch st.Code() {
	case codes.InvalidArgument, codes.OutOfRange, codes.Internal, codes.Unknown:
		return true
	case codes.ResourceExhausted: // too large, but for what is to be repeated after a while
		return !slices.ContainsFunc(st.Details(), func(d any) bool { _, ok := d.(*errdetails.RetryInfo); return ok })
	}
	return false
}

// Close does nothing: no call outlives its Send.
func (u *Unary) Close(context.Context) {}
