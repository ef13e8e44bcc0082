package audit

import (
	"context"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/requestid"
)

// Auditor stands before the handlers of calls that are written down.
type Auditor struct {
	Log *Log
	// Audited reports whether a method is.
	Audited func(method string) bool
	// Code names what a call ended with.
	Code func(error) string
}

// down is of a call that was not done. Nothing is written any more until the server is restarted, so to repeat the
// call there does not help.
func down() *problem.Error {
	return &problem.Error{
		Kind: problem.Unavailable, Reason: "AUDIT_DOWN", RetryAfter: problem.NoRetry,
		Message: "this call is written down, and the server's audit log cannot be written until it is restarted",
	}
}

// Unary writes down a unary call before it is done, and what came of it before it is
// answered, if that can be written.
func (a *Auditor) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if !a.Audited(info.FullMethod) {
		return handler(ctx, request)
	}
	c := &Call{info.FullMethod, request, requestid.Given(ctx)}
	asked, err := a.Log.Asked(ctx, c)
	if err != nil {
		return nil, down()
	}
	reply, answer := handler(ctx, request)
	if answer != nil {
		c.ID, answer = requestid.Name(ctx, answer)
	}
	a.answered(ctx, asked, c, answer)
	return reply, answer
}

// answered writes down what came of a call that was done. Where it cannot, the caller is told what
// came of it all the same: what looks refused is done again. That the call was asked for is written
// down, the log has said why it ends there, and every later call is refused.
func (a *Auditor) answered(ctx context.Context, asked int64, c *Call, answer error) {
	_ = a.Log.Answered(ctx, asked, c, a.Code(answer))
}

// Stream writes down when a stream begins and how it ends.
func (a *Auditor) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if !a.Audited(info.FullMethod) {
		return handler(srv, stream)
	}
	ctx := stream.Context()
	c := &Call{Method: info.FullMethod, ID: requestid.Given(ctx)}
	asked, err := a.Log.Asked(ctx, c)
	if err != nil {
		return down()
	}
	answer := handler(srv, stream)
	if answer != nil {
		c.ID, answer = requestid.Name(ctx, answer)
	}
	a.answered(ctx, asked, c, answer)
	return answer
}
