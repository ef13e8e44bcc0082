package workflow

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Shards are the shards of a topic in which a workflow may be, the one for new ones first.
func Shards(t *store.Topic, id string) []store.Shard {
	return place.Candidates(t, place.DerivedID(make([]byte, 10), rootOf(id)))
}

// taskID is the id of the task of a making. It follows from the workflow, and lies in its
// shard, however many shards there are.
func (w *Workflow) taskID(serial int64) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[0:], w.Life)
	binary.BigEndian.PutUint64(b[8:], uint64(serial))
	sum := sha256.Sum256(b[:])
	return place.DerivedID(sum[:], rootOf(w.ID))
}

// childID is the id of a child: that of a later try, or of a later start, is another one.
func (w *Workflow) childID(n *node, u *Unit) string {
	id := w.ID + "/" + n.name
	if u.Try > 1 || w.Starts > 1 {
		id += ":" + strconv.FormatInt(u.Serial, 10)
	}
	return id
}

// rootOf is the id of the workflow that is nobody's child.
func rootOf(id string) string {
	root, _, _ := strings.Cut(id, "/")
	return root
}
