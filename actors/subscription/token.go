package subscription

import (
	"encoding/binary"

	"github.com/ddq-io/ddq/store"
)

// A hold token on the wire: a version, the shard, and the store's token. Workers
// must treat it as opaque.
const (
	tokenVersion = 1
	TokenSize    = 1 + 2 + 16
)

// EncodeToken is a hold token as workers get it.
func EncodeToken(shard int, t store.Token) []byte {
	return AppendToken(make([]byte, 0, TokenSize), shard, t)
}

// AppendToken appends one to b.
func AppendToken(b []byte, shard int, t store.Token) []byte {
	b = append(b, tokenVersion)
	b = binary.BigEndian.AppendUint16(b, uint16(shard))
	return append(b, t[:]...)
}

// DecodeToken returns the shard and the store's token; ok is false for what is no hold token.
func DecodeToken(b []byte) (shard int, t store.Token, ok bool) {
	if len(b) != TokenSize || b[0] != tokenVersion {
		return 0, t, false
	}
	copy(t[:], b[3:])
	return int(binary.BigEndian.Uint16(b[1:])), t, true
}
