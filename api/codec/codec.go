// Package codec carries ddq's messages through gRPC with the marshalers that
// were generated for them, which take about half the time of the reflective ones.
//
// Both ends choose it explicitly; nothing is registered:
//
//	grpc.NewServer(grpc.ForceServerCodecV2(codec.Proto))
//	conn.Invoke(ctx, method, in, out, grpc.ForceCodecV2(codec.Proto))
//
// The wire format is protobuf's, so each end may use it without the other.
// One difference: generated code does not check strings for valid UTF-8.
// Whoever accepts strings from outside has to, or peers with the standard
// codec cannot read them.
package codec

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// Proto is the codec. It keeps buffers for later messages, and is safe for
// concurrent use. Messages without generated marshalers, such as those of health
// checks and reflection, go the standard way.
var Proto encoding.CodecV2 = vtCodec{new(bufferPool)}

// Name is the content subtype: that of gRPC's own protobuf codec.
const Name = "proto"

// generated is a message with vtprotobuf's methods.
type generated interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
	UnmarshalVT([]byte) error
	Reset()
}

// reusable is a message that keeps the memory of what is in it when it is emptied. Whoever reads
// one after the other into it takes out before what is to stay as it is.
type reusable interface {
	generated
	ResetVT()
}

type vtCodec struct{ pool *bufferPool }

func (vtCodec) Name() string { return Name }

// Marshal encodes v into one buffer, from the pool unless it is small.
func (c vtCodec) Marshal(v any) (mem.BufferSlice, error) {
	switch m := v.(type) {
	case generated:
		return c.encode(m.SizeVT(), func(b []byte) ([]byte, error) {
			return marshalInto(m, b)
		})
	case protoadapt.MessageV2:
		return c.marshalStandard(m)
	case protoadapt.MessageV1:
		return c.marshalStandard(protoadapt.MessageV2Of(m))
	}
	return nil, fmt.Errorf("codec: %T is not a protobuf message", v)
}

// Unmarshal replaces what v holds by what data encodes. v keeps no reference
// to data.
func (c vtCodec) Unmarshal(data mem.BufferSlice, v any) error {
	buf := data.MaterializeToBuffer(c.pool)
	defer buf.Free()
	switch m := v.(type) {
	case reusable:
		m.ResetVT()
		return m.UnmarshalVT(buf.ReadOnlyData())
	case generated:
		m.Reset() // the generated code merges
		return m.UnmarshalVT(buf.ReadOnlyData())
	case protoadapt.MessageV2:
		return proto.Unmarshal(buf.ReadOnlyData(), m)
	case protoadapt.MessageV1:
		return proto.Unmarshal(buf.ReadOnlyData(), protoadapt.MessageV2Of(m))
	}
	return fmt.Errorf("codec: %T is not a protobuf message", v)
}

// marshalInto fills b, which has the message's size.
func marshalInto(m generated, b []byte) ([]byte, error) {
	n, err := m.MarshalToSizedBufferVT(b)
	if err != nil {
		return nil, err
	}
	if n != len(b) {
		return nil, fmt.Errorf("codec: %T changed while it was marshaled", m)
	}
	return b, nil
}

func (c vtCodec) marshalStandard(m proto.Message) (mem.BufferSlice, error) {
	return c.encode(proto.Size(m), func(b []byte) ([]byte, error) {
		return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b[:0], m)
	})
}

// encode hands fill a buffer of size bytes and wraps it for gRPC, which frees
// it once it is on the wire.
func (c vtCodec) encode(size int, fill func([]byte) ([]byte, error)) (mem.BufferSlice, error) {
	if mem.IsBelowBufferPoolingThreshold(size) {
		b, err := fill(make([]byte, size))
		return mem.BufferSlice{mem.SliceBuffer(b)}, err
	}
	b := c.pool.Get(size)
	if _, err := fill((*b)[:size]); err != nil {
		c.pool.Put(b)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(b, c.pool)}, nil
}
