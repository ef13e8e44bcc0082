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

func down() *problem.Error {
	return &problem.Error{
		Kind: problem.Unavailable, Reason: "AUDIT_DOWN", Message: "this call is written down, and the server cannot write", RetryAfter: problem.RetrySoon,
	}
}

// Unary writes down a unary call before it is done, and what came of it before it is answered.
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
	if err := a.Log.Answered(ctx, asked, c, a.Code(answer)); err != nil {
		return nil, down() // that it was asked for is written down
	}
	return reply, answer
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
	if err := a.Log.Answered(ctx, asked, c, a.Code(answer)); err != nil {
		return down()
	}
	return answer
}
