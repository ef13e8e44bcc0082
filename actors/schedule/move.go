package schedule

import (
	"slices"

	"github.com/ddq-io/ddq/actors/schedule/cell"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// A schedule moves when its topic gets other shards: it never ends, so it cannot stay in
// shards that are to become empty. The owner of its shard deletes the cell, takes back what
// was made ahead, and sends the schedule to where its name lies now, in one commit. Runs that
// are open stay; what is told of them is sent after it.

// Shards are the shards of a topic in which a schedule may be, the one for new ones first.
func Shards(t *store.Topic, name string) []store.Shard {
	return place.Candidates(t, (&Schedule{Name: name}).ID(Occurrence{}))
}

// MoveOut returns the commit that sends the schedule of a cell to another shard. An error
// wraps ErrCorrupt.
func MoveOut(l Look, env Env) (store.Commit, error) {
	s, err := FromCell(l.Cell)
	if err == nil {
		env.Table, err = s.Table()
	}
	if err != nil {
		return putAside(l.Cell), asCorrupt(err)
	}
	p := &step{Env: env, s: s.clone()}
	p.s.passUntracked(p.Now)
	for _, id := range l.Begun {
		p.begun(id)
	}
	for _, o := range p.takeBack(notDue) {
		p.waitBefore(o)
	}
	body, err := Encode(p.s)
	if err != nil {
		return putAside(l.Cell), asCorrupt(err)
	}
	c := store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: l.Cell.ID}, If: l.Cell.Version}}, Removes: p.out.Remove}
	sent, err := (&cell.Sent{Schedule: body}).MarshalVT()
	c.Send = []store.Parcel{{Topic: l.Topic.Name, To: l.Cell.ID, Body: sent}}
	return c, err
}

// Forward returns a parcel for a schedule that is not in the shard any more, as it is sent on.
func Forward(p *store.Parcel, topic string) store.Parcel {
	sent := store.Parcel{Topic: topic, To: p.To, Body: p.Body}
	if e := p.Ended; e != nil {
		sent.Body, _ = (&cell.Sent{Ended: &cell.Ended{
			Id: e.ID, Kind: int32(e.Kind), Reason: int32(e.Reason), At: int64(p.At), Started: int64(e.Started),
		}}).MarshalVT() // fails for text that is no UTF-8, which no id of a run is
	}
	return sent
}

// arrived returns the schedule that moves to here with the first of the parcels that has one,
// and the parcels behind that; nil: none does.
func arrived(name string, parcels []store.Parcel) (*Schedule, []store.Parcel) {
	for i := range parcels {
		if s := Moving(&parcels[i], name); s != nil {
			s.Taken = parcels[i].Number // what it took were others
			return s, slices.Clone(parcels[i+1:])
		}
	}
	return nil, nil
}

// Moving returns the schedule that a parcel brings to another shard; nil when it brings none.
func Moving(p *store.Parcel, name string) *Schedule {
	var c cell.Sent
	if p.Ended != nil || c.UnmarshalVT(p.Body) != nil || len(c.Schedule) == 0 {
		return nil
	}
	s, err := Decode(name, c.Schedule)
	if err != nil {
		return nil
	}
	return s
}

// toldByBody is Told for what was sent on.
func toldByBody(p *store.Parcel) Event {
	var c cell.Sent
	if c.UnmarshalVT(p.Body) != nil || c.Ended == nil {
		return nil
	}
	e := c.Ended
	return Told(&store.Parcel{At: store.Millis(e.At), Ended: &store.Ended{
		ID: e.Id, Kind: store.ChangeKind(e.Kind), Reason: store.Reason(e.Reason), Started: store.Millis(e.Started),
	}})
}
