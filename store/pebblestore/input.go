package pebblestore

import "encoding/binary"

// input reads fixed fields off the front of b. Past the end it reads zeros and says so.
type input struct {
	b     []byte
	short bool
}

func (in *input) bytes(n uint64) []byte {
	if n > uint64(len(in.b)) {
		in.b, in.short = nil, true
		return nil
	}
	head := in.b[:n]
	in.b = in.b[n:]
	return head
}

func (in *input) byte() byte {
	if b := in.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (in *input) uint64() uint64 {
	if b := in.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (in *input) uvarint() uint64 {
	v, n := binary.Uvarint(in.b)
	if n <= 0 {
		in.b, in.short = nil, true
		return 0
	}
	in.b = in.b[n:]
	return v
}

func (in *input) varint() int64 {
	v, n := binary.Varint(in.b)
	if n <= 0 {
		in.b, in.short = nil, true
		return 0
	}
	in.b = in.b[n:]
	return v
}

// text reads a length and as many bytes.
func (in *input) text() string { return string(in.bytes(in.uvarint())) }
