package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/server/status"
)

// unaryCalls are those that the channel can make. A handler runs on the goroutine of its
// caller, which waits for it anyhow.
type unaryCalls struct {
	local *localCalls
	chain grpc.UnaryServerInterceptor
	by    map[string]unaryCall // by the full name of the method; read only once the server is made
}

type unaryCall struct {
	server any
	handle grpc.MethodHandler
}

func newUnaryCalls(local *localCalls, chain grpc.UnaryServerInterceptor) *unaryCalls {
	return &unaryCalls{local: local, chain: chain, by: make(map[string]unaryCall)}
}

func (u *unaryCalls) add(desc *grpc.ServiceDesc, server any) {
	for _, method := range desc.Methods {
		u.by["/"+desc.ServiceName+"/"+method.MethodName] = unaryCall{server, method.Handler}
	}
}

// invoke copies the request to the handler and its answer to the response: both ends may go
// on to use theirs.
func (u *unaryCalls) invoke(caller context.Context, method string, request, response any) error {
	call, ok := u.by[method]
	if !ok {
		return grpcstatus.Errorf(codes.Unimplemented, "%s is not served here", method)
	}
	if !u.local.begin() {
		return status.Of(caller, u.local.log, method, status.Draining())
	}
	defer u.local.running.Done()
	ctx, done := u.local.within(from(received(caller), caller), caller)
	defer done()
	answer, err := call.handle(call.server, ctx, func(into any) error { return copyMessage(into, request) }, u.chain)
	if err != nil {
		return err
	}
	return copyMessage(response, answer)
}

// received is a context with what a server gets of a call: of the caller's values the
// metadata only.
func received(caller context.Context) context.Context {
	ctx := grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{Addr: ownAddr{}})
	if md, ok := metadata.FromOutgoingContext(caller); ok {
		return metadata.NewIncomingContext(ctx, md)
	}
	return ctx
}

// ownAddr is where calls within the process come from.
type ownAddr struct{}

func (ownAddr) Network() string { return "inproc" }
func (ownAddr) String() string  { return "0" }
