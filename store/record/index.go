package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ddq-io/ddq/store"
)

// attributesField is the number of Body.attributes; the others are of an Attribute.
const (
	attributesField = 3
	keyField        = 1
	valueField      = 2
)

var errIndexed = errors.New("malformed attributes")

// AppendIndexed appends attributes: each is the length of its name in a byte, the
// name, the length of its value in two bytes, and the value.
func AppendIndexed(b []byte, attributes []store.Attribute) []byte {
	for _, a := range attributes {
		name, value := a.Key[:min(len(a.Key), math.MaxUint8)], a.Value[:min(len(a.Value), math.MaxUint16)]
		b = append(append(b, byte(len(name))), name...)
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(value))), value...)
	}
	return b
}

// DecodeIndexed reads what AppendIndexed wrote.
func DecodeIndexed(b []byte) (attributes []store.Attribute, err error) {
	for len(b) > 0 {
		name := int(b[0])
		if len(b) < 3+name {
			return nil, errIndexed
		}
		end := 3 + name + int(binary.BigEndian.Uint16(b[1+name:]))
		if len(b) < end {
			return nil, errIndexed
		}
		attributes = append(attributes, store.Attribute{Key: string(b[1 : 1+name]), Value: string(b[3+name : end])})
		b = b[end:]
	}
	return attributes, nil
}

// AppendIndexName appends what the entries of an attribute begin with.
func AppendIndexName(b []byte, name string) []byte {
	name = name[:min(len(name), store.MaxIndexName)]
	return append(append(b, byte(len(name))), name...)
}

// AppendIndexValue appends what entries of a value go on with: the value, a zero byte,
// and whether it was cut. The id follows.
func AppendIndexValue(b []byte, e store.IndexEntry) []byte {
	b = append(append(b, e.Value...), 0)
	if e.Cut {
		return append(b, 1)
	}
	return append(b, 0)
}

// CutIndexEntry reads an entry. The id is left as it is stored, a part of b.
func CutIndexEntry(b []byte) (name string, e store.IndexEntry, id []byte, ok bool) {
	if len(b) < 1 || len(b) < 1+int(b[0]) {
		return "", e, nil, false
	}
	name, b = string(b[1:1+b[0]]), b[1+b[0]:]
	end := bytes.IndexByte(b, 0)
	if end < 0 || len(b) < end+2 || b[end+1] > 1 {
		return "", e, nil, false
	}
	return name, store.IndexEntry{Value: string(b[:end]), Cut: b[end+1] == 1}, b[end+2:], true
}

// IndexRange returns where the entries of a query begin, and what is behind them. The
// ids of After are appended by appendID.
func IndexRange(b []byte, q *store.IndexQuery, appendID func([]byte, string) []byte) (from, to []byte) {
	start := AppendIndexName(b, q.Name)
	want := store.NewIndexEntry(q.Value, "")
	if q.Prefix {
		start = append(start, want.Value...)
	} else {
		start = AppendIndexValue(start, want)
	}
	from, to = bytes.Clone(start), successor(start)
	if q.After != nil {
		after := appendID(AppendIndexValue(AppendIndexName(bytes.Clone(b), q.Name), *q.After), q.After.ID)
		if after = append(after, 0); bytes.Compare(after, from) > 0 {
			from = after
		}
	}
	return from, to
}

// successor is behind everything that begins with b, in which some byte is not the
// highest.
func successor(b []byte) []byte {
	end := len(b)
	for b[end-1] == 0xff {
		end--
	}
	next := bytes.Clone(b[:end])
	next[end-1]++
	return next
}

// BodyAttributes returns attributes of an encoded body that are in a set, in the set's order,
// without reading the rest of it.
func BodyAttributes(b []byte, set store.IndexSet) (indexed []store.Attribute) {
	if set == "" {
		return nil
	}
	var all []store.Attribute
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		b = b[n:]
		if field == attributesField && kind == protowire.BytesType {
			a, n := protowire.ConsumeBytes(b)
			if n < 0 {
				break
			}
			all = append(all, decodeAttribute(a))
			b = b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(field, kind, b); n < 0 {
			break
		}
		b = b[n:]
	}
	return set.Of(all)
}

func decodeAttribute(b []byte) (a store.Attribute) {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 || kind != protowire.BytesType {
			break
		}
		text, m := protowire.ConsumeBytes(b[n:])
		if m < 0 {
			break
		}
		switch field {
		case keyField:
			a.Key = string(text)
		case valueField:
			a.Value = string(text)
		}
		b = b[n+m:]
	}
	return a
}
