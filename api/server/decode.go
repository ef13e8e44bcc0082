package server

import (
	"context"
	"log/slog"
	"slices"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/codec"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/status"
)

// malformed says that a message of the caller could not be unmarshaled. For the library
// that is INTERNAL, which is for errors of the server.
func malformed(err error) *problem.Error {
	return &problem.Error{Kind: problem.Invalid, Reason: "BAD_MESSAGE", Message: "the message cannot be read: " + err.Error()}
}

// receive has the library unmarshal a message.
func receive(m any, from func(any) error) error {
	r := codec.Request{Message: m}
	if err := from(&r); err != nil {
		return err
	}
	if r.Err != nil {
		return malformed(r.Err)
	}
	return nil
}

// checked describes a service whose unary calls answer what cannot be unmarshaled as this
// server answers bad requests, and have nothing received of callers that who does not know. Interceptors
// come too late for both: they see a call once it is unmarshaled.
func checked(desc *grpc.ServiceDesc, who *guard.Guard, log *slog.Logger) *grpc.ServiceDesc {
	own := *desc
	own.Methods = slices.Clone(desc.Methods)
	for i := range own.Methods {
		method := &own.Methods[i]
		handle, name := method.Handler, "/"+desc.ServiceName+"/"+method.MethodName
		method.Handler = func(srv any, ctx context.Context, decode func(any) error, chain grpc.UnaryServerInterceptor) (any, error) {
			ctx, known := who.Ask(ctx, name)
			return handle(srv, ctx, func(request any) error {
				if !known {
					return nil // the chain refuses it
				}
				if err := receive(request, decode); err != nil {
					return status.Of(ctx, log, name, err)
				}
				return nil
			}, chain)
		}
	}
	return &own
}

// checkedStream is a stream whose handler learns of a message that cannot be
// unmarshaled as of a bad request.
type checkedStream struct{ grpc.ServerStream }

func (s checkedStream) RecvMsg(m any) error {
	return receive(m, s.ServerStream.RecvMsg)
}
