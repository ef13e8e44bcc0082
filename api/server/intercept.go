package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/audit"
	"github.com/ddq-io/ddq/api/requestid"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/naming"
	"github.com/ddq-io/ddq/api/server/status"
)

// interceptor stands between the library and what answers calls.
type interceptor struct {
	log     *slog.Logger
	metrics *serverMetrics
	who     *guard.Guard
	audit   *audit.Auditor // nil: nothing is written down
	names   *naming.Interceptor
}

func newInterceptor(config Config, log *slog.Logger, reg registerer) *interceptor {
	i := &interceptor{log: log, metrics: newMetrics(reg, config.Recorded), who: guard.New(config.Access, config.Audit)}
	if config.Observe {
		i.who.Observe(guard.NewObserver(log, i.metrics.observed))
	}
	i.names = &naming.Interceptor{Names: naming.New(), Full: i.who.Full}
	if !i.who.On() || config.Observe {
		i.names.Enter = i.who.Enter
	}
	if config.Audit != nil {
		i.audit = &audit.Auditor{Log: config.Audit, Audited: i.who.Audited, Code: codeOf}
	}
	return i
}

// codeOf names what a call ended with: OK, or the reason that its caller is told.
func codeOf(err error) string {
	if err == nil {
		return codes.OK.String()
	}
	e := status.Classify(err)
	return cmp.Or(e.Reason, status.Code(e.Kind).String())
}

func (i *interceptor) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(i.unary()...), grpc.ChainStreamInterceptor(i.stream()...)}
}

// unary are, from the outside in: metrics, which see the code; errors to codes; panics
// to errors; who may make the call, where that is asked; full names for those that callers use; and the audit
// log, where there is one.
func (i *interceptor) unary() []grpc.UnaryServerInterceptor {
	all := []grpc.UnaryServerInterceptor{
		i.metrics.unary, i.unaryErrors,
		recovery.UnaryServerInterceptor(recovery.WithRecoveryHandlerContext(i.recovered)),
	}
	if i.who.On() {
		all = append(all, i.who.Unary)
	}
	all = append(all, i.names.Unary)
	if i.audit != nil {
		all = append(all, i.audit.Unary)
	}
	return all
}

// stream are the same for streams.
func (i *interceptor) stream() []grpc.StreamServerInterceptor {
	all := []grpc.StreamServerInterceptor{
		i.metrics.stream, i.streamErrors,
		recovery.StreamServerInterceptor(recovery.WithRecoveryHandlerContext(i.recovered)),
	}
	if i.who.On() {
		all = append(all, i.who.Stream)
	}
	all = append(all, i.names.Stream)
	if i.audit != nil {
		all = append(all, i.audit.Stream)
	}
	return all
}

func (i *interceptor) unaryErrors(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	if err != nil {
		return nil, status.Of(ctx, i.log, info.FullMethod, err)
	}
	return resp, nil
}

func (i *interceptor) streamErrors(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := handler(srv, checkedStream{stream}); err != nil {
		return status.Of(stream.Context(), i.log, info.FullMethod, err)
	}
	return nil
}

// recovered turns a panic into an error that says nothing to the caller.
func (i *interceptor) recovered(ctx context.Context, p any) error {
	i.metrics.panics.Inc()
	id, err := requestid.Name(ctx, &problem.Error{Kind: problem.Internal, Message: fmt.Sprintf("panic: %v", p)})
	i.log.ErrorContext(ctx, "handler panicked", "request", id, "err", p, "stack", string(debug.Stack()))
	return err
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
