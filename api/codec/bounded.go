package codec

import (
	"errors"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
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
var Bounded encoding.CodecV2 = boundedCodec{Proto}

type boundedCodec struct{ encoding.CodecV2 }

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
		return c.CodecV2.Unmarshal(data, v) // there cannot be too many
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	left := MaxItems
	if countItems(buf.ReadOnlyData(), m.ProtoReflect().Descriptor(), &left); left < 0 {
		return ErrTooManyItems
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{buf}, v)
}

// countItems takes the items of an encoded message off left, until that is below 0. It
// stops at what is malformed, which is for the unmarshaler to refuse.
func countItems(b []byte, d protoreflect.MessageDescriptor, left *int) {
	fields := d.Fields()
	for len(b) > 0 && *left >= 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(number, kind, b[n:])
		if size < 0 {
			return
		}
		if f := fields.ByNumber(number); f != nil && kind == protowire.BytesType {
			countField(b[n:n+size], f, left)
		}
		b = b[n+size:]
	}
}

// countField counts a length and what comes behind it, the value of a field.
func countField(b []byte, f protoreflect.FieldDescriptor, left *int) {
	if f.Cardinality() == protoreflect.Repeated {
		*left--
	}
	if f.Message() == nil {
		return
	}
	if value, n := protowire.ConsumeBytes(b); n >= 0 {
		countItems(value, f.Message(), left)
	}
}
