package codec

import (
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// shape is what there is to count in an encoded message: what of its fields is repeated,
// and which of them are messages that have such fields themselves. It is nil for a
// message without either.
type shape struct{ fields []fieldShape } // by number

type fieldShape struct {
	repeated bool
	message  *shape
}

// shapes are those of messages, by name. It is safe for concurrent use.
type shapes struct{ known sync.Map }

// of returns the shape of m, which is worked out once.
func (s *shapes) of(m protoreflect.MessageDescriptor) *shape {
	if known, ok := s.known.Load(m.FullName()); ok {
		return known.(*shape)
	}
	found := shapeOf(m, make(map[protoreflect.FullName]*shape))
	s.known.Store(m.FullName(), found)
	return found
}

// shapeOf works a shape out. A message that may be within itself has one, whatever its
// other fields: it is in within before its fields are looked at.
func shapeOf(m protoreflect.MessageDescriptor, within map[protoreflect.FullName]*shape) *shape {
	if s, ok := within[m.FullName()]; ok {
		return s
	}
	s, counts := new(shape), false
	within[m.FullName()] = s
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		at := fieldShape{repeated: f.Cardinality() == protoreflect.Repeated}
		if f.Message() != nil {
			at.message = shapeOf(f.Message(), within)
		}
		for len(s.fields) <= int(f.Number()) {
			s.fields = append(s.fields, fieldShape{})
		}
		s.fields[f.Number()] = at
		counts = counts || at.repeated || at.message != nil
	}
	if !counts {
		s = nil
	}
	within[m.FullName()] = s
	return s
}

// count takes the items of an encoded message off left, until that is below 0. It stops
// at what is malformed, which is for the unmarshaler to refuse.
func (s *shape) count(b []byte, left *int) {
	for len(b) > 0 && *left >= 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if kind != protowire.BytesType {
			n = protowire.ConsumeFieldValue(number, kind, b)
			if n < 0 {
				return
			}
			b = b[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if int(number) < len(s.fields) {
			s.fields[number].count(value, left)
		}
	}
}

// count takes one value off left, and the items in it.
func (f fieldShape) count(value []byte, left *int) {
	if f.repeated {
		*left--
	}
	if f.message != nil {
		f.message.count(value, left)
	}
}
