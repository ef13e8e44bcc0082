package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/fullstorydev/grpchan/inprocgrpc"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/server/status"
)

// channel is a connection to the server's services from within its process. Calls are
// checked, counted and answered as those of the port are; messages are copied instead of
// marshaled.
type channel struct{ *inprocgrpc.Channel }

func newChannel(local *localCalls, i *interceptor) channel {
	c := channel{new(inprocgrpc.Channel)}
	c.WithServerUnaryInterceptor(chainUnary(append([]grpc.UnaryServerInterceptor{local.unary}, i.unary()...)))
	c.WithServerStreamInterceptor(chainStream(append([]grpc.StreamServerInterceptor{local.stream}, i.stream()...)))
	c.WithCloner(cloner{})
	return c
}

// Channel is a connection to this server that needs no port; it works before Serve, too.
// After Stop its calls are UNAVAILABLE, and Stop waits for those that run.
func (s *Server) Channel() grpc.ClientConnInterface { return s.channel }

// callerKey is under which the context of a caller is found.
type callerKey struct{}

// Invoke waits for the handler's answer, also when ctx ends, which the handler sees. So
// what a handler gave to its caller is never lost between them.
func (c channel) Invoke(ctx context.Context, method string, request, response any, opts ...grpc.CallOption) error {
	lasting := context.WithValue(context.WithoutCancel(ctx), callerKey{}, ctx)
	return c.Channel.Invoke(lasting, method, request, response, opts...)
}

// NewStream keeps a promise of grpc.ClientStream on which generated clients rest: where the client sends one
// message, sending it does not fail because the handler has ended. What it answered is for RecvMsg to tell.
func (c channel) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.Channel.NewStream(ctx, desc, method, opts...)
	if err != nil || desc.ClientStreams {
		return stream, err
	}
	return requestStream{stream}, nil
}

// requestStream sends one message.
type requestStream struct{ grpc.ClientStream }

func (s requestStream) SendMsg(m any) error {
	if err := s.ClientStream.SendMsg(m); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// localCalls are the calls of the channel that run. Those of streams may outlive their
// callers.
type localCalls struct {
	log  *slog.Logger
	cut  context.Context // done when calls are to end at once
	stop context.CancelFunc

	mu      sync.Mutex
	running sync.WaitGroup // added to under mu, and not once ended
	ended   bool           // guarded by mu
}

func newLocalCalls(log *slog.Logger) *localCalls {
	l := &localCalls{log: log}
	l.cut, l.stop = context.WithCancel(context.Background())
	return l
}

// end takes no more calls and waits for those that run. They are cut off when ctx ends.
func (l *localCalls) end(ctx context.Context) {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	defer l.stop()
	defer context.AfterFunc(ctx, l.stop)()
	l.running.Wait()
}

func (l *localCalls) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.running.Add(1)
	}
	return !l.ended
}

// within is ctx for as long as the caller waits and calls are not cut off.
func (l *localCalls) within(ctx, caller context.Context) (context.Context, func()) {
	waits, cancel := context.WithCancel(caller)
	stop := context.AfterFunc(l.cut, cancel)
	return localContext{waits, ctx}, func() { stop(); cancel() }
}

// localContext ends as the one does, and has the values of the other.
type localContext struct {
	context.Context
	values context.Context
}

func (c localContext) Value(key any) any { return c.values.Value(key) }

// AfterFunc is what package context asks of contexts that are not its own: without it,
// each one derived costs a goroutine.
func (c localContext) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.Context, f) }

// callerOf is the context of the caller of a call within the process, and ctx for others.
func callerOf(ctx context.Context) context.Context {
	if client := inprocgrpc.ClientContext(ctx); client != nil {
		return client
	}
	return ctx
}

// from returns a context of the handler that says where the caller's call came from, as
// package rest says of requests, and who makes it, as package ui says of visitors.
func from(ctx context.Context) context.Context {
	client := inprocgrpc.ClientContext(ctx)
	if client == nil {
		return ctx
	}
	if s := access.Caller(client); s != nil {
		ctx = access.WithCaller(ctx, s)
	}
	if o, known := auth.OriginOf(client); known {
		return auth.WithOrigin(ctx, o)
	}
	return ctx
}

func (l *localCalls) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if !l.begin() {
		return nil, status.Of(ctx, l.log, info.FullMethod, status.Draining())
	}
	defer l.running.Done()
	caller, ok := inprocgrpc.ClientContext(ctx).Value(callerKey{}).(context.Context)
	if !ok {
		caller = ctx
	}
	ctx, done := l.within(from(ctx), caller)
	defer done()
	return handler(ctx, request)
}

func (l *localCalls) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if !l.begin() {
		return status.Of(stream.Context(), l.log, info.FullMethod, status.Draining())
	}
	defer l.running.Done()
	ctx, done := l.within(from(stream.Context()), stream.Context())
	defer done()
	return handler(srv, localStream{stream, ctx})
}

type localStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s localStream) Context() context.Context { return s.ctx }

// cloner copies messages between the caller and the handler, which may both go on to
// use theirs.
type cloner struct{ inprocgrpc.ProtoCloner }

// Copy also fills what the server receives into: see checked.
func (c cloner) Copy(out, in any) error {
	if r, ok := out.(*codec.Request); ok {
		out = r.Message
	}
	to, ok := out.(proto.Message)
	from, also := in.(proto.Message)
	if !ok || !also {
		return fmt.Errorf("copy %T to %T: not messages", in, out)
	}
	proto.Reset(to)
	proto.Merge(to, from)
	return nil
}

// chainUnary makes one interceptor of several, the first outermost.
func chainUnary(all []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	if len(all) == 1 {
		return all[0]
	}
	first, rest := all[0], chainUnary(all[1:])
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return first(ctx, request, info, func(ctx context.Context, request any) (any, error) {
			return rest(ctx, request, info, handler)
		})
	}
}

func chainStream(all []grpc.StreamServerInterceptor) grpc.StreamServerInterceptor {
	if len(all) == 1 {
		return all[0]
	}
	first, rest := all[0], chainStream(all[1:])
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return first(srv, stream, info, func(srv any, stream grpc.ServerStream) error {
			return rest(srv, stream, info, handler)
		})
	}
}
