package envelope

import (
	"bytes"
	"encoding/binary"
)

// magic begins an encrypted payload, and associated data.
const magic = "DDQE1"

const (
	maxID      = 64
	maxWrapped = 4096
)

// header is what stands before the nonce: which key the payload is encrypted under.
type header struct {
	id      string
	wrapped []byte
}

func (h header) append(b []byte) []byte {
	b = append(b, magic...)
	b = append(b, byte(len(h.id)))
	b = append(b, h.id...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(h.wrapped)))
	return append(b, h.wrapped...)
}

// split takes the header off an encrypted payload. Its bytes are those of b.
func split(b []byte) (h header, sealed []byte, err error) {
	b, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok {
		return h, nil, ErrPlain
	}
	id, b, ok := cut(b, 1)
	if !ok || len(id) == 0 || len(id) > maxID {
		return h, nil, ErrCorrupt
	}
	wrapped, b, ok := cut(b, 2)
	if !ok || len(wrapped) == 0 || len(wrapped) > maxWrapped {
		return h, nil, ErrCorrupt
	}
	return header{string(id), wrapped}, b, nil
}

// cut takes a part off b whose length stands before it, in so many bytes.
func cut(b []byte, lengthBytes int) (part, rest []byte, ok bool) {
	if len(b) < lengthBytes {
		return nil, nil, false
	}
	n := 0
	for _, c := range b[:lengthBytes] {
		n = n<<8 | int(c)
	}
	if b = b[lengthBytes:]; len(b) < n {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// associated is what a ciphertext is bound to: a topic, or the id of a key.
func associated(to string) []byte { return append([]byte(magic), to...) }
