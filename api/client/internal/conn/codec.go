package conn

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/ddq-io/ddq/api/codec"
)

// Coded is a connection whose calls use ddq's codec, whoever made it. Those that fail have the id
// that the server gave them.
type Coded struct{ grpc.ClientConnInterface }

var useCodec = grpc.ForceCodecV2(codec.Proto)

// Invoke makes a unary call.
func (c Coded) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	var trailer metadata.MD
	if err := c.ClientConnInterface.Invoke(ctx, method, args, reply, append(opts, useCodec, grpc.Trailer(&trailer))...); err != nil {
		return failed(err, trailer)
	}
	return nil
}

// NewStream begins a call with streams.
func (c Coded) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, desc, method, append(opts, useCodec)...)
	if err != nil {
		return nil, err
	}
	return stream{s}, nil
}
