package store

// Box is where the parcels of a shard lie.
type Box uint8

const (
	InBox  Box = iota + 1 // for cells of the shard
	OutBox                // on their way to another shard
)

// Parcel is what a call leaves for a cell. It lies in the in-box of the shard until a
// commit of the owner has taken it, or in the out-box on its way to another shard.
type Parcel struct {
	Number int64 // of its box, from 1, rising; numbers may be left out. None of an out-box is given twice, also by a server that was set back
	At     Millis
	To     CellID
	Topic  string // of the shard that it goes to, for the out-box or a queue; empty: it is for the in-box
	Class  Class  // of the queue that it is sent to, whose other parts are Topic and the Life of the shard; 0: it is for a box
	Body   []byte // as it was sent; nil when Ended says what there is to say
	Ended  *Ended
}

// Size is about how many bytes a parcel has.
func (p *Parcel) Size() int {
	n := len(p.To) + len(p.Topic) + len(p.Body)
	if e := p.Ended; e != nil {
		n += len(e.ID) + len(e.Worker) + len(e.Error) + len(e.Result) + len(e.Say)
	}
	return n
}

// ToldQuery says which parcels of the in-box to return.
type ToldQuery struct {
	After int64 // number of the last one that is known
	Limit int   // > 0
	Cells int   // > 0; how many cells they are for at most
}

// Cut leaves of some parcels the first, as many as are for q.Cells cells, and returns those.
func (q ToldQuery) Cut(parcels []Parcel) ([]Parcel, []CellID) {
	var ids []CellID
	seen := make(map[CellID]bool)
	for i := range parcels {
		to := parcels[i].To
		if seen[to] {
			continue
		}
		if len(ids) == q.Cells {
			return parcels[:i], ids
		}
		seen[to], ids = true, append(ids, to)
	}
	return parcels, ids
}

// Ended is what the end of a task leaves for the cell that the task names (Task.Tells), and
// so does a task that ended and is pending again.
type Ended struct {
	ID      string
	Kind    ChangeKind // ChangeDone, ChangeDead, ChangeDeleted; ChangeRequeued: it is pending again
	Reason  Reason     // Dead
	Attempt int        // counted
	Due     Millis
	Started Millis // of the last attempt, when the task ended by it
	Worker  string // of that attempt
	Error   string // of the last attempt that failed
	Result  []byte // Done
	Say     []byte // Done, Dead: what the ack or the nack said, see Ack
}
