package codec

import (
	"errors"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// MaxItems is how many items of repeated fields a message may have that a server
// takes, those of the messages in it included. A batch of 1,000 tasks with 32
// attributes each has about half as many.
const MaxItems = 1 << 16

// ErrTooManyItems is why Bounded does not unmarshal a message.
var ErrTooManyItems = errors.New("codec: more than 65536 items of repeated fields")

// Bounded is Proto for whoever receives from strangers. An empty item takes two bytes
// of a message and a few hundred of memory, so a message of 4 MiB would take 1 GiB.
// Items are counted before anything is allocated for them.
var Bounded encoding.CodecV2 = boundedCodec{vtCodec{new(bufferPool)}, new(shapes)}

type boundedCodec struct {
	vtCodec
	shapes *shapes
}

// itemBytes is the least that an item takes: its tag and its length.
const itemBytes = 2

// Request has a message unmarshaled into Message, and keeps the error instead of
// returning it: gRPC answers a message that cannot be unmarshaled by itself, with
// INTERNAL, and its handler cannot say otherwise.
type Request struct {
	Message any
	Err     error // set by Bounded
}

func (c boundedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*Request); ok {
		r.Err = c.unmarshal(data, r.Message)
		return nil
	}
	return c.unmarshal(data, v)
}

func (c boundedCodec) unmarshal(data mem.BufferSlice, v any) error {
	m, known := v.(proto.Message)
	if !known || data.Len() <= itemBytes*MaxItems {
		return c.vtCodec.Unmarshal(data, v) // there cannot be too many
	}
	s := c.shapes.of(m.ProtoReflect().Descriptor())
	if s == nil {
		return c.vtCodec.Unmarshal(data, v)
	}
	buf := data.MaterializeToBuffer(c.pool)
	defer buf.Free()
	left := MaxItems
	if s.count(buf.ReadOnlyData(), &left); left < 0 {
		return ErrTooManyItems
	}
	return c.vtCodec.Unmarshal(mem.BufferSlice{buf}, v)
}
