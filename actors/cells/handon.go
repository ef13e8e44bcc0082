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
	put  store.Put // that changes it
	last int64
}

// handOn delivers parcels of the out-box, in order of their numbers for each shard that they
// go to, and reports whether there are more. A shard remembers in a cell, the tally, what it
// got of this one: so each arrives once, however often it is sent.
func (l mover) handOn(ctx context.Context) (more bool, err error) {
	for range l.Knobs.HandPages {
		parcels, err := l.outgoing(ctx)
		if err != nil || len(parcels) == 0 {
			return false, err
		}
		if err := l.handOnAll(ctx, parcels); err != nil {
			return false, err
		}
	}
	return true, nil
}

// handOnAll delivers parcels, and forgets them here.
func (l mover) handOnAll(ctx context.Context, parcels []store.Parcel) error {
	byShard := make(map[store.Shard][]store.Parcel)
	var order []store.Shard
	for i := range parcels {
		to, there, err := l.destination(ctx, &parcels[i])
		if err != nil {
			return err
		}
		if there {
			continue
		}
		if byShard[to] == nil {
			order = append(order, to)
		}
		byShard[to] = append(byShard[to], parcels[i])
	}
	for _, to := range order {
		if err := l.deliver(ctx, to, byShard[to]); err != nil {
			return err
		}
	}
	arrived := make([]int64, len(parcels))
	for i := range parcels {
		arrived[i] = parcels[i].Number
	}
	_, _, err := l.commitAll(ctx, l.ID, &l.Fence, []store.Commit{{Drop: arrived}})
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

// destination is the shard that a parcel goes to: that of the generation behind this one, though there may be
// newer ones, so that what is told to a schedule does not overtake it where reshards follow each other. It has
// arrived if that shard has it, or one that the parcel went to before there were newer ones.
func (l mover) destination(ctx context.Context, p *store.Parcel) (to store.Shard, there bool, err error) {
	shards := schedule.Shards(l.Topic, p.To.Key())
	to = shards[0]
	for _, s := range shards {
		if s.N <= l.ID.N { // older ones are not asked
			break
		}
		t, err := l.tallyIn(ctx, s)
		if err != nil {
			return to, false, err
		}
		if t.last >= p.Number {
			return to, true, nil
		}
		to = s
	}
	return to, false, nil
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
	c.Puts = []store.Put{t.put}
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
