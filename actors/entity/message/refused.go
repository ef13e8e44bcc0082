package message

import (
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// List has the tasks of a shard that could not be delivered.
const List = "undeliverable"

// Refused is a task that could not be delivered, as it is kept where its ack was.
type Refused struct {
	Topic   string // that it is for
	Task    *store.Task
	Why     string
	At      store.Millis
	Cell    store.CellID
	Version int64
}

// Refuse keeps the task of a parcel of the out-box instead of delivering it.
func Refuse(p *store.Parcel, why string, at store.Millis) (store.Commit, error) {
	body, err := (&record.Undeliverable{Topic: p.Topic, Task: p.Body, Why: why, AtMs: int64(at)}).MarshalVT()
	id := refusedID(p)
	return store.Commit{
		Puts: []store.Put{{Cell: store.Cell{ID: id, List: List, Listed: at, Body: body}, If: store.AnyVersion}},
		Drop: []int64{p.Number},
	}, err
}

// refusedID is the cell that keeps the task of a parcel. Ids are unique in a topic only, and one may come twice to
// that: only the number tells tasks apart. Nodes of before named the cell by the task's id alone: whoever looks for
// one reads what the cells keep.
func refusedID(p *store.Parcel) store.CellID {
	return store.CellID(fmt.Sprintf("%cwork/%s/%d", store.CellRefused, p.Topic, p.Number))
}

// FromCell reads what a cell keeps.
func FromCell(c store.Cell) (*Refused, error) {
	var kept record.Undeliverable
	if err := kept.UnmarshalVT(c.Body); err != nil {
		return nil, err
	}
	t, err := record.DecodeSent(kept.Task)
	return &Refused{Topic: kept.Topic, Task: t, Why: kept.Why, At: store.Millis(kept.AtMs), Cell: c.ID, Version: c.Version}, err
}

// Again sends the task once more.
func (r *Refused) Again() (store.Commit, error) {
	p, err := Parcel(r.Topic, r.Task)
	return store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: r.Cell}, If: r.Version}}, Send: []store.Parcel{p}}, err
}

// Forget deletes it.
func (r *Refused) Forget() store.Commit {
	return store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: r.Cell}, If: r.Version}}}
}
