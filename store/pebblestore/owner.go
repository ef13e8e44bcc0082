package pebblestore

import (
	"encoding/binary"
	"errors"

	"github.com/ddq-io/ddq/store"
)

// owner says who may hold tasks of a shard. It is stored as it is here.
type owner struct {
	node  string // empty: nobody
	fence store.Fence
}

func (o owner) is(f store.Fence) bool { return o.node != "" && o.fence == f }

func (o owner) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(o.fence.Epoch))
	b = append(b, o.fence.Nonce[:]...)
	return append(b, o.node...)
}

func decodeOwner(b []byte) (o owner, err error) {
	in := input{b: b}
	o.fence.Epoch = int64(in.uint64())
	copy(o.fence.Nonce[:], in.bytes(uint64(len(o.fence.Nonce))))
	o.node = string(in.b)
	if in.short {
		return owner{}, errors.New("decode owner of a shard: malformed")
	}
	return o, nil
}
