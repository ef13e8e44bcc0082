package server

import (
	"context"
	"log/slog"
	"sync"

	"github.com/fullstorydev/grpchan/inprocgrpc"
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/server/status"
)

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

// callerKey is under which the context of a caller is found.
type callerKey struct{}

// callerOf is the context of the caller of a call within the process, and ctx for others.
func callerOf(ctx context.Context) context.Context {
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		return caller
	}
	return ctx
}

// from returns a context of the handler that has the caller's, and says where the caller's call came
// from, as package rest says of requests, and who makes it, as package ui says of visitors.
func from(ctx, caller context.Context) context.Context {
	ctx = context.WithValue(ctx, callerKey{}, caller)
	if s := access.Caller(caller); s != nil {
		ctx = access.WithCaller(ctx, s)
	}
	if o, known := auth.OriginOf(caller); known {
		return auth.WithOrigin(ctx, o)
	}
	return ctx
}

func (l *localCalls) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if !l.begin() {
		return status.Of(stream.Context(), l.log, info.FullMethod, status.Draining())
	}
	defer l.running.Done()
	ctx := stream.Context()
	ctx, done := l.within(from(ctx, inprocgrpc.ClientContext(ctx)), ctx)
	defer done()
	return handler(srv, localStream{stream, ctx})
}

type localStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s localStream) Context() context.Context { return s.ctx }
