package schedule

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/ddq-io/ddq/store/place"
)

// ID is the id of the task that a run of an occurrence is. It follows from the cell, so
// that none is stored, and lies in the shard of the cell, however many shards there are.
func (s *Schedule) ID(o Occurrence) string {
	var b [25]byte
	binary.BigEndian.PutUint64(b[0:], s.Life)
	b[8] = byte(o.Origin)
	binary.BigEndian.PutUint64(b[9:], uint64(o.At))
	binary.BigEndian.PutUint64(b[17:], o.N)
	sum := sha256.Sum256(b[:])
	return place.DerivedID(sum[:], s.Name)
}
