package server

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/fullstorydev/grpchan/inprocgrpc"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ddq-io/ddq/api/codec"
)

// channel is a connection to the server's services from within its process. Calls are
// checked, counted and answered as those of the port are; messages are copied instead of
// marshaled.
type channel struct {
	*inprocgrpc.Channel // of streams
	unary               *unaryCalls
}

func newChannel(local *localCalls, i *interceptor) channel {
	c := channel{new(inprocgrpc.Channel), newUnaryCalls(local, chainUnary(i.unary()))}
	c.WithServerStreamInterceptor(chainStream(append([]grpc.StreamServerInterceptor{local.stream}, i.stream()...)))
	c.WithCloner(cloner{})
	return c
}

// Channel is a connection to this server that needs no port; it works before Serve, too.
// After Stop its calls are UNAVAILABLE, and Stop waits for those that run.
func (s *Server) Channel() grpc.ClientConnInterface { return s.channel }

// RegisterService adds the calls of a service.
func (c channel) RegisterService(desc *grpc.ServiceDesc, server any) {
	c.Channel.RegisterService(desc, server)
	c.unary.add(desc, server)
}

// Invoke waits for the handler's answer, also when ctx ends, which the handler sees. So
// what a handler gave to its caller is never lost between them.
func (c channel) Invoke(ctx context.Context, method string, request, response any, _ ...grpc.CallOption) error {
	return c.unary.invoke(ctx, method, request, response)
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

// cloner copies messages of streams between the caller and the handler, which may both go on
// to use theirs. What is sent is cloned, so that who receives may take it as it is.
type cloner struct{ inprocgrpc.ProtoCloner }

// Copy also fills what the server receives into: see checked.
func (cloner) Copy(out, in any) error {
	to, from, err := messages(out, in)
	if err != nil {
		return err
	}
	proto.Reset(to)
	into, taken := to.ProtoReflect(), from.ProtoReflect()
	taken.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		into.Set(field, value)
		return true
	})
	into.SetUnknown(taken.GetUnknown())
	return nil
}

// copyMessage fills out with a copy of what is in another message.
func copyMessage(out, in any) error {
	to, from, err := messages(out, in)
	if err != nil {
		return err
	}
	proto.Reset(to)
	proto.Merge(to, from)
	return nil
}

func messages(out, in any) (to, from proto.Message, err error) {
	if r, ok := out.(*codec.Request); ok {
		out = r.Message
	}
	to, ok := out.(proto.Message)
	from, also := in.(proto.Message)
	if !ok || !also {
		return nil, nil, fmt.Errorf("copy %T to %T: not messages", in, out)
	}
	return to, from, nil
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
