package conn

import (
	"context"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/codec"
)

// Coded is a connection whose calls use ddq's codec, whoever made it.
type Coded struct{ grpc.ClientConnInterface }

var useCodec = grpc.ForceCodecV2(codec.Proto)

// Invoke makes a unary call.
func (c Coded) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, append(opts, useCodec)...)
}

// NewStream begins a call with streams.
func (c Coded) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.ClientConnInterface.NewStream(ctx, desc, method, append(opts, useCodec)...)
}
