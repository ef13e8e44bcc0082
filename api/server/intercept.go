package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/problem"
)

// interceptor stands between the library and what answers calls.
type interceptor struct {
	log     *slog.Logger
	metrics *serverMetrics
	who     *guard
}

func (i *interceptor) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(i.unary()...), grpc.ChainStreamInterceptor(i.stream()...)}
}

// unary are, from the outside in: metrics, which see the code; errors to codes; panics
// to errors; and who may make the call, where that is asked.
func (i *interceptor) unary() []grpc.UnaryServerInterceptor {
	all := []grpc.UnaryServerInterceptor{
		i.metrics.unary, i.unaryErrors,
		recovery.UnaryServerInterceptor(recovery.WithRecoveryHandlerContext(i.recovered)),
	}
	if i.who.on() {
		all = append(all, i.who.unary)
	}
	return all
}

// stream are the same for streams.
func (i *interceptor) stream() []grpc.StreamServerInterceptor {
	all := []grpc.StreamServerInterceptor{
		i.metrics.stream, i.streamErrors,
		recovery.StreamServerInterceptor(recovery.WithRecoveryHandlerContext(i.recovered)),
	}
	if i.who.on() {
		all = append(all, i.who.stream)
	}
	return all
}

func (i *interceptor) unaryErrors(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	if err != nil {
		return nil, toStatus(ctx, i.log, info.FullMethod, err)
	}
	return resp, nil
}

func (i *interceptor) streamErrors(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := handler(srv, checkedStream{stream}); err != nil {
		return toStatus(stream.Context(), i.log, info.FullMethod, err)
	}
	return nil
}

// recovered turns a panic into an error that says nothing to the caller.
func (i *interceptor) recovered(ctx context.Context, p any) error {
	i.metrics.panics.Inc()
	i.log.ErrorContext(ctx, "handler panicked", "err", p, "stack", string(debug.Stack()))
	return &problem.Error{Kind: problem.Internal, Message: fmt.Sprintf("panic: %v", p)}
}

// guard runs f and turns a panic into an error, for goroutines that the
// recovery interceptor does not see: one bad frame must not take the node down.
func (i *interceptor) guard(ctx context.Context, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = i.recovered(ctx, p)
		}
	}()
	return f()
}
