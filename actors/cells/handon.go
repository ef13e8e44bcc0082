package cells

import (
	"context"
	"slices"
	"strconv"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// tallyPrefix is how the cells are called that remember what came from a shard.
const tallyPrefix = "tfrom/"

// tally is a cell that remembers a number.
type tally struct {
	put    store.Put // that changes it
	last   int64
	server uint64 // that it was read from, at the latest: another one may have an earlier number
}

// handOn delivers parcels of the out-box, in order of their numbers for each shard that they
// go to, and reports whether there are more. A shard remembers in a cell, the tally, what it
// got of this one: so each arrives once, however often it is sent. What a shard does not take now waits with all
// that is behind it for that shard, and holds up no other one. The first error is returned.
func (l mover) handOn(ctx context.Context) (more bool, err error) {
	pass := handing{mover: l, down: make(map[store.Shard]bool)}
	for range l.Knobs.HandPages {
		parcels, err := l.outgoing(ctx)
		if err != nil {
			return false, err
		}
		if len(parcels) == 0 {
			return false, pass.err
		}
		if err := pass.handOnAll(ctx, parcels); err != nil {
			return false, err
		}
	}
	return true, pass.err
}

// handing is one pass over the out-box.
type handing struct {
	mover
	down map[store.Shard]bool // that get nothing more in this pass: a tally is a prefix
	err  error                // the first one of a shard that is down
}

func (h *handing) fail(to store.Shard, err error) {
	if h.down[to] = true; h.err == nil {
		h.err = err
	}
}

// handOnAll delivers parcels, and forgets those here that have arrived.
func (h *handing) handOnAll(ctx context.Context, parcels []store.Parcel) error {
	byShard := make(map[store.Shard][]store.Parcel)
	var order []store.Shard
	var arrived []int64
	for i := range parcels {
		p := &parcels[i]
		shards := h.destinations(p)
		to := shards[len(shards)-1]
		if h.down[to] {
			continue
		}
		there, err := h.arrivedIn(ctx, shards, p.Number)
		switch {
		case err != nil:
			h.fail(to, err)
			continue
		case there:
			arrived = append(arrived, p.Number)
			continue
		case byShard[to] == nil:
			order = append(order, to)
		}
		byShard[to] = append(byShard[to], *p)
	}
	for _, to := range order {
		if err := h.deliver(ctx, to, byShard[to]); err != nil {
			h.fail(to, err)
			continue
		}
		for i := range byShard[to] {
			arrived = append(arrived, byShard[to][i].Number)
		}
	}
	if len(arrived) == 0 {
		return nil
	}
	_, _, err := h.commitAll(ctx, h.ID, &h.Fence, []store.Commit{{Drop: arrived}})
	return err
}

// outgoing returns the next parcels of the out-box that are for schedules. The others are the
// relay's.
func (l mover) outgoing(ctx context.Context) (found []store.Parcel, err error) {
	for len(found) == 0 {
		page, err := l.Store.Parcels(ctx, l.ID, store.OutBox, l.handed, l.Knobs.HandBatch)
		if err != nil || len(page) == 0 {
			return nil, err
		}
		l.handed = page[len(page)-1].Number
		found = slices.DeleteFunc(page, func(p store.Parcel) bool { return message.Crosses(&p) })
	}
	return found, nil
}

// tallyOf is the cell in which other shards remember what they got of this one.
func (l mover) tallyOf() store.CellID { return store.CellID(tallyPrefix + strconv.Itoa(l.ID.N)) }

// destinations are the shards behind this one that a parcel may have gone to, the newest first. It goes to the last of
// them, that of the generation behind this one, so that what is told to a schedule does not overtake it where reshards
// follow each other.
func (l mover) destinations(p *store.Parcel) []store.Shard {
	shards := schedule.Shards(l.Topic, p.To.Key())
	n := 1
	for n < len(shards) && shards[n].N > l.ID.N {
		n++
	}
	return shards[:n]
}

// arrivedIn reports whether one of some shards has got a parcel of this one.
func (l mover) arrivedIn(ctx context.Context, shards []store.Shard, number int64) (bool, error) {
	for _, s := range shards {
		if t, err := l.tallyIn(ctx, s); err != nil || t.last >= number {
			return err == nil, err
		}
	}
	return false, nil
}

// deliver puts parcels into the in-box of another shard.
func (l mover) deliver(ctx context.Context, to store.Shard, parcels []store.Parcel) error {
	t, err := l.tallyIn(ctx, to)
	if err != nil {
		return err
	}
	var c store.Commit
	for i := range parcels {
		c.Send = append(c.Send, store.Parcel{To: parcels[i].To, Body: parcels[i].Body})
	}
	if err := l.commitCounted(ctx, to, nil, t, parcels[len(parcels)-1].Number, c); err != nil {
		return err
	}
	l.out.Told = append(l.out.Told, to)
	return nil
}

// commitCounted makes a commit with which a tally comes to remember a number. It fails when another owner
// was quicker: the next look knows.
func (l *look) commitCounted(ctx context.Context, s store.Shard, f *store.Fence, t *tally, number int64, c store.Commit) error {
	t.put.Body = strconv.AppendInt(nil, number, 10)
	c.Puts, c.From = []store.Put{t.put}, t.server
	_, results, err := l.commitAll(ctx, s, f, []store.Commit{c})
	if err != nil {
		return err
	}
	if r := &results[0]; r.Status != store.OK && !schedule.Landed(&c, r) {
		return store.ErrUnavailable
	}
	t.last = number
	t.put.If = t.put.Next(t.put.If)
	return nil
}

// tallyIn is what another shard remembers of this one. It is read once in a look.
func (l mover) tallyIn(ctx context.Context, s store.Shard) (*tally, error) {
	if t := l.tallies[s]; t != nil {
		return t, nil
	}
	t, err := l.tally(ctx, s, l.tallyOf())
	if err != nil {
		return nil, err
	}
	if l.tallies == nil {
		l.tallies = make(map[store.Shard]*tally)
	}
	l.tallies[s] = &t
	return &t, nil
}

// tally reads a cell that remembers a number.
func (l mover) tally(ctx context.Context, s store.Shard, id store.CellID) (t tally, err error) {
	t.server = l.Store.Server(ctx, s)
	cells, err := l.Store.Cells(ctx, s, []store.CellID{id})
	if err != nil {
		return t, err
	}
	if cells[0].Version != 0 {
		if t.last, err = strconv.ParseInt(string(cells[0].Body), 10, 64); err != nil {
			return t, err
		}
	}
	t.put = store.Put{Cell: store.Cell{ID: id}, If: cells[0].Version}
	return t, nil
}
