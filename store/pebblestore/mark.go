package pebblestore

import (
	"encoding/binary"
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// keyMark says which task has an idempotency key.
type keyMark struct {
	id    string
	past  life.Requests // those before it, and those that replaced it
	due   store.Millis
	until store.Millis // end of the window; 0: while the task is pending or running
	look  store.Millis // when to look whether the key is free
}

// The two parts of tableKeys: marks by key, and keys by when to look at them.
const (
	partMarks byte = iota
	partLooks
)

func appendMarkKey(b []byte, number uint32, key string) []byte {
	return append(append(appendPrefix(b, number, tableKeys), partMarks), key...)
}

func appendLookKey(b []byte, number uint32, look store.Millis, key string) []byte {
	return append(appendMillis(append(appendPrefix(b, number, tableKeys), partLooks), look), key...)
}

func (m *keyMark) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(m.until))
	b = binary.BigEndian.AppendUint64(b, uint64(m.due))
	b = binary.BigEndian.AppendUint64(b, uint64(m.look))
	b = binary.AppendUvarint(b, uint64(len(m.id)))
	return append(append(b, m.id...), m.past...)
}

func decodeMark(b []byte) (*keyMark, error) {
	in := input{b: b}
	m := &keyMark{until: store.Millis(in.uint64()), due: store.Millis(in.uint64()), look: store.Millis(in.uint64())}
	m.id = string(in.bytes(in.uvarint()))
	m.past = life.Requests(in.b)
	if in.short {
		return nil, fmt.Errorf("decode mark of a key: malformed")
	}
	return m, nil
}
