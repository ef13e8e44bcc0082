package audience

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// RunKey names a run of a schedule.
type RunKey struct {
	Schedule string
	Life     uint64 // of the schedule
	Origin   uint8
	At       store.Millis // the occurrence
	N        uint64       // tells those of one instant and origin apart
}

// ID is the id of the task that a recipient in a shard of the audience gets: it follows
// from the run and the recipient, so that none is stored and none is made twice.
func (r *RunKey) ID(shard int, recipient string) string {
	sum := sha256.Sum256(append(r.seed(), recipient...))
	return place.DerivedID(sum[:], r.Key(shard))
}

// seed is what tells the run from all others.
func (r *RunKey) seed() []byte {
	b := make([]byte, 0, 32+MaxID)
	b = binary.BigEndian.AppendUint64(b, r.Life)
	b = append(b, r.Origin)
	b = binary.BigEndian.AppendUint64(b, uint64(r.At))
	return binary.BigEndian.AppendUint64(b, r.N)
}

// Key says in which shard of its topic the walk through a shard of
// the audience lies, and all its tasks.
func (r *RunKey) Key(shard int) string { return r.Schedule + "/" + strconv.Itoa(shard) }

// Text names the run among all of its audience.
func (r *RunKey) Text() string {
	sum := sha256.Sum256(r.seed())
	return r.Schedule + "/" + hex.EncodeToString(sum[:8])
}

// Cell is the cell that the walk through a shard of the audience is.
func (r *RunKey) Cell(shard int) store.CellID {
	return store.CellID(store.CellWalk) + store.CellID(r.Text()+"/"+strconv.Itoa(shard))
}

// Rotation is the Turn of a run whose first recipients are not always the same.
func (r *RunKey) Rotation() Position {
	sum := sha256.Sum256(append(r.seed(), "turn"...))
	return Position(binary.BigEndian.Uint64(sum[:]))
}
