package workflow

import (
	"crypto/sha256"
	"encoding/binary"

	told "github.com/ddq-io/ddq/actors/schedule/cell"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// Begin returns the cells of a workflow that begins at a time; the owner of the shard, which finds
// it awake then, makes its first steps. An id is given to one workflow only.
func (r *Run) Begin(id string, d *graph.Definition, at, now store.Millis) ([]store.Put, error) {
	sum := sha256.Sum256([]byte(r.ID))
	w := New(id, binary.BigEndian.Uint64(sum[:]), d, now)
	w.Run, w.Started = r, at
	c, err := Commit(nil, w, &Effects{Wake: at}, Context{Now: now})
	return c.Puts, err
}

// CancelParcel asks a workflow to end.
func CancelParcel(id string) store.Parcel {
	p, _ := (&Order{ChildRef: ChildRef{ID: id}, What: AskedToEnd}).parcel("") // never fails
	return p
}

// tellSchedule tells the schedule that its run has ended, or that it goes on after its end.
func (w *Workflow) tellSchedule(c *store.Commit, before *Stored, out *Effects) error {
	if w.Run == nil || !w.Run.Tells {
		return nil
	}
	var kinds []store.ChangeKind
	if was := before != nil && !before.w.Phase.Open(); was && (w.Phase.Open() || out.Ended) {
		kinds = append(kinds, store.ChangeRequeued)
	}
	if out.Ended {
		kinds = append(kinds, runEnds[w.Phase])
	}
	for _, kind := range kinds {
		body, err := (&told.Sent{Ended: &told.Ended{Id: w.Run.ID, Kind: int32(kind), At: int64(w.Ended), Started: int64(w.Started)}}).MarshalVT()
		if err != nil {
			return err
		}
		c.Send = append(c.Send, store.Parcel{To: store.CellID([]byte{store.CellSchedule}) + store.CellID(w.Run.Schedule), Body: body})
	}
	return nil
}

var runEnds = map[State]store.ChangeKind{Done: store.ChangeDone, Failed: store.ChangeDead, Cancelled: store.ChangeDeleted}
