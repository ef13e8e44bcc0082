package audience

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// ID is the id of the task that a recipient gets: it follows from the run and the recipient,
// so that none is stored and none is made twice. It lies in the shard of the schedule.
func (o *Order) ID(recipient string) string {
	sum := sha256.Sum256(append(append(make([]byte, 0, 64+MaxID), o.Run...), recipient...))
	return place.DerivedID(sum[:], o.Schedule)
}

// WalkID is the cell of the walk of a run, and PartID that of the template of its tasks,
// which does not change with it.
func WalkID(run string) store.CellID { return store.CellID(store.CellWalk) + store.CellID(run) }

// PartID is described with WalkID.
func PartID(run string) store.CellID { return store.CellID(PartKind) + store.CellID(run) }

// PartKind is the kind of the parts of walks.
const PartKind = 'F'

// rotation is the Turn of a run whose first recipients are not always the same.
func rotation(run string) Position {
	sum := sha256.Sum256([]byte(run))
	return Position(binary.BigEndian.Uint64(sum[:]))
}
