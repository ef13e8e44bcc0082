package record

import (
	"encoding/binary"

	"github.com/ddq-io/ddq/store"
)

// keptSize is how many bytes in front of a value say when it was kept, and in the highest bit
// whether it is encrypted.
const (
	keptSize      = 8
	keptEncrypted = 1 << 63
)

// AppendKept appends a value of a journal to b, behind when it is kept. The scripts of Redis write
// the same.
func AppendKept(b []byte, at store.Millis, e *store.JournalEntry) []byte {
	head := uint64(at)
	if e.Encrypted {
		head |= keptEncrypted
	}
	return append(binary.BigEndian.AppendUint64(b, head), e.Value...)
}

// DecodeKept reads what AppendKept wrote into e. The value is a part of b; of what is too short there is
// none.
func DecodeKept(b []byte, e *store.JournalEntry) {
	if len(b) < keptSize {
		return
	}
	head := binary.BigEndian.Uint64(b)
	e.Kept, e.Encrypted, e.Value = store.Millis(head&^keptEncrypted), head&keptEncrypted != 0, b[keptSize:]
}
