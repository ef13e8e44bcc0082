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

// tasks finds the tasks of a workflow.
type tasks struct{ w *Workflow }

// id is the id of the task of a making in a topic. It follows from the workflow. In the
// topic of the workflow, which is the empty one, it lies in its shard, however many shards there
// are; in others it lies anywhere.
func (t tasks) id(topic string, serial int64) string {
	sum := t.hash(serial)
	if topic != "" {
		return place.DerivedID(sum[:], string(sum[10:20]))
	}
	return place.DerivedID(sum[:], rootOf(t.w.ID))
}

// hash is of a making.
func (t tasks) hash(serial int64) [sha256.Size]byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[0:], t.w.Life)
	binary.BigEndian.PutUint64(b[8:], uint64(serial))
	return sha256.Sum256(b[:])
}

// of is the task of the last making of a unit. A child is known by such an id, too.
func (t tasks) of(unit int) TaskRef {
	topic := t.topicOf(unit)
	return TaskRef{Topic: topic, ID: t.id(topic, t.w.Units[unit].Serial)}
}

// topicOf is where the last making of a unit is; empty: in the topic of the workflow.
func (t tasks) topicOf(unit int) string {
	n := t.w.of().find(unit)
	switch t.w.Units[unit].State {
	case UnitUndoing, UnitUndone, UnitUndoFailed:
		return n.Undo.Topic
	}
	if n.Task == nil {
		return ""
	}
	return n.Task.Topic
}

// child is the child of the last making of a unit. That of a later try, or of a later start, has another
// id. So has each in another topic, where a workflow of this id may have children, too, and so may one of a
// third topic, and one for which another workflow has the id: there was one of the id of this before.
func (t tasks) child(unit int) ChildRef {
	n, u := t.w.of().find(unit), &t.w.Units[unit]
	r := ChildRef{Topic: n.Child.Topic, ID: t.w.ID + "/" + n.name, Task: t.of(unit).ID}
	switch {
	case r.Topic != "" || u.Marked:
		sum := t.hash(u.Serial)
		r.ID += ":" + strconv.FormatUint(binary.BigEndian.Uint64(sum[:])>>29, 36)
	case u.Try > 1 || t.w.Starts > 1:
		r.ID += ":" + strconv.FormatInt(u.Serial, 10)
	}
	return r
}

// rootOf is the id of the workflow that is nobody's child.
func rootOf(id string) string {
	root, _, _ := strings.Cut(id, "/")
	return root
}
