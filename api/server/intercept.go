package server

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/problem"
)

// interceptors are, from the outside in: metrics, which see the code; errors to
// codes; panics to errors.
func (s *Server) interceptors() []grpc.ServerOption {
	rescue := recovery.WithRecoveryHandlerContext(s.recovered)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(s.metrics.unary, s.unaryErrors, recovery.UnaryServerInterceptor(rescue)),
		grpc.ChainStreamInterceptor(s.metrics.stream, s.streamErrors, recovery.StreamServerInterceptor(rescue)),
	}
}

func (s *Server) unaryErrors(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	if err != nil {
		return nil, toStatus(ctx, s.log, info.FullMethod, err)
	}
	return resp, nil
}

func (s *Server) streamErrors(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := handler(srv, checkedStream{stream}); err != nil {
		return toStatus(stream.Context(), s.log, info.FullMethod, err)
	}
	return nil
}

// recovered turns a panic into an error that says nothing to the caller.
func (s *Server) recovered(ctx context.Context, p any) error {
	s.metrics.panics.Inc()
	s.log.ErrorContext(ctx, "handler panicked", "err", p, "stack", string(debug.Stack()))
	return &problem.Error{Kind: problem.Internal, Message: fmt.Sprintf("panic: %v", p)}
}

// guard runs f and turns a panic into an error, for goroutines that the
// recovery interceptor does not see: one bad frame must not take the node down.
func (s *Server) guard(ctx context.Context, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.recovered(ctx, p)
		}
	}()
	return f()
}
