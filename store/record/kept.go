package record

import (
	"encoding/binary"

	"github.com/ddq-io/ddq/store"
)

// keptSize is how many bytes in front of a value say when it was kept.
const keptSize = 8

// AppendKept appends a value of a journal to b, behind when it was kept. The scripts of Redis write
// the same.
func AppendKept(b []byte, at store.Millis, value []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(at)), value...)
}

// DecodeKept reads what AppendKept wrote. The value is a part of b; of what is too short there is none.
func DecodeKept(b []byte) (at store.Millis, value []byte) {
	if len(b) < keptSize {
		return 0, nil
	}
	return store.Millis(binary.BigEndian.Uint64(b)), b[keptSize:]
}
