package naming

import (
	"context"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/scope"
)

// Interceptor stands before the handlers of calls.
type Interceptor struct {
	Names *Names
	// Enter returns a context with the namespace of a call, or says why there is none. nil: who stands
	// before has done so.
	Enter func(context.Context) (context.Context, error)
	// Full reports whether a method uses full names.
	Full func(method string) bool
}

// enter returns the context of a call, and whether its names are full ones.
func (i *Interceptor) enter(ctx context.Context, method string) (context.Context, bool, error) {
	if p := auth.From(ctx); i.Full(method) || p != nil && p.Kind == auth.KindNode {
		return ctx, true, nil
	}
	if i.Enter == nil {
		return ctx, false, nil
	}
	ctx, err := i.Enter(ctx)
	return ctx, false, err
}

// Unary edits a unary call.
func (i *Interceptor) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, full, err := i.enter(ctx, info.FullMethod)
	if full || err != nil {
		if err != nil {
			return nil, err
		}
		return handler(ctx, request)
	}
	namespace := scope.Of(ctx)
	i.Names.Request(namespace, request)
	answer, err := handler(ctx, request)
	if err != nil {
		return nil, i.Names.Error(namespace, err)
	}
	return i.Names.Answer(namespace, answer), nil
}

// Stream edits the messages of a stream.
func (i *Interceptor) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx, full, err := i.enter(stream.Context(), info.FullMethod)
	if full || err != nil {
		if err != nil {
			return err
		}
		return handler(srv, stream)
	}
	s := &editedStream{ServerStream: stream, ctx: ctx, names: i.Names, namespace: scope.Of(ctx)}
	return i.Names.Error(s.namespace, handler(srv, s))
}

// editedStream is a stream whose handler sees full names.
type editedStream struct {
	grpc.ServerStream
	ctx       context.Context
	names     *Names
	namespace string
	byNode    bool // a node takes deliveries: nothing is edited
}

func (s *editedStream) Context() context.Context { return s.ctx }

func (s *editedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if r, is := m.(*ddqv1.SubscribeRequest); is && r.GetHello().GetNode() != "" {
		s.byNode = true // as it says; whether it is one, the handler asks
	}
	if !s.byNode {
		s.names.Request(s.namespace, m)
	}
	return nil
}

func (s *editedStream) SendMsg(m any) error {
	if s.byNode {
		return s.ServerStream.SendMsg(m)
	}
	return s.ServerStream.SendMsg(s.names.Answer(s.namespace, m))
}
