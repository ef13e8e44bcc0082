package record

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ddq-io/ddq/store"
)

// traitsField is the number of Body.traits.
const traitsField = 6

// laneSize is that of a lane without its key.
const laneSize = 2

var errTraits = errors.New("malformed traits")

// AppendTraits appends the stored form of t, nothing for nil: its lane, as
// AppendLane writes it, and then its Keys. Stores index by the first part.
func AppendTraits(b []byte, t *store.Traits) []byte {
	if t == nil {
		return b
	}
	keys := Keys{Ordering: t.OrderingKey, Rate: t.RateKey, Concurrency: t.ConcurrencyKey, FairnessWeight: int32(t.FairnessWeight)}
	b = AppendLane(b, t.Lane())
	start, size := len(b), keys.SizeVT()
	b = append(b, make([]byte, size)...)
	if _, err := keys.MarshalToSizedBufferVT(b[start:]); err != nil {
		panic(err) // the buffer has the size that it asked for
	}
	return b
}

// DecodeTraits reads what AppendTraits wrote.
func DecodeTraits(b []byte) (*store.Traits, error) {
	if len(b) == 0 {
		return nil, nil
	}
	lane, rest, err := CutLane(b)
	if err != nil {
		return nil, err
	}
	var keys Keys
	if err := keys.UnmarshalVT(rest); err != nil {
		return nil, fmt.Errorf("%w: %w", errTraits, err)
	}
	return &store.Traits{
		Priority:       lane.Priority,
		FairnessKey:    lane.Key,
		FairnessWeight: int(keys.FairnessWeight),
		OrderingKey:    keys.Ordering,
		RateKey:        keys.Rate,
		ConcurrencyKey: keys.Concurrency,
	}, nil
}

// orderingTag is how Keys begin that have an ordering key.
const orderingTag = 1<<3 | byte(protowire.BytesType)

// Ordering finds the ordering key in encoded traits, without reading the rest of them;
// empty is none.
func Ordering(traits []byte) string {
	if len(traits) == 0 {
		return ""
	}
	_, rest, err := CutLane(traits)
	if err != nil || len(rest) == 0 || rest[0] != orderingTag {
		return ""
	}
	key, n := protowire.ConsumeBytes(rest[1:])
	if n < 0 {
		return ""
	}
	return string(key)
}

// AppendLane appends a lane: a byte for the priority, a byte for the length of the
// key, and the key. No lane begins like another.
func AppendLane(b []byte, l store.Lane) []byte {
	return append(append(b, byte(l.Priority), byte(len(l.Key))), l.Key...)
}

// CutLane reads the lane that b begins with.
func CutLane(b []byte) (l store.Lane, rest []byte, err error) {
	if len(b) < laneSize || len(b) < laneSize+int(b[1]) || b[0] > store.MaxPriority || b[1] > store.MaxKey {
		return l, nil, errTraits
	}
	end := laneSize + int(b[1])
	return store.Lane{Priority: int(b[0]), Key: string(b[laneSize:end])}, b[end:], nil
}

// BodyTraits finds the traits in an encoded body, without reading the rest of it. They
// are a part of b, empty when there are none.
func BodyTraits(b []byte) []byte {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil
		}
		b = b[n:]
		if field == traitsField && kind == protowire.BytesType {
			traits, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return nil
			}
			return traits
		}
		if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
			return nil
		}
		b = b[n:]
	}
	return nil
}
