package cells

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/sent"
	"github.com/ddq-io/ddq/store"
)

// forwards is the cell of a shard that remembers up to which number it has sent parcels on.
const forwards = store.CellID("tin")

// tallyPrefix is how the cells are called that remember what came from a shard.
const tallyPrefix = "tfrom/"

// former reports whether the shard is of before a reshard: its schedules are to be in others.
func (l *look) former() bool { return Former(l.Topic, l.ID.N) }

// Former reports whether a shard is of before those that are active. One of behind them is
// of a reshard of which this node has not heard yet.
func Former(t *store.Topic, n int) bool { return n < t.Active().First }

// mover is what a look does about shards of before a reshard, and of what was told to them.
type mover struct{ *look }

// move brings schedules, and what is told to them, to where they lie now: it sends the cells
// that are there, hands on what is in the out-box, and forgets what nobody needs any more.
func (l mover) move(ctx context.Context) error {
	left, err := l.handOn(ctx)
	if err != nil || left {
		l.out.Again = l.out.Again || left
		return err
	}
	cells, next, err := l.Store.CellPage(ctx, l.ID, store.CellSchedule, "", batch)
	if err != nil {
		return err
	}
	if len(cells) == 0 && next == "" {
		return l.tidy(ctx)
	}
	l.looks = nil
	for _, c := range cells {
		if c.List != schedule.CorruptList {
			l.looks = append(l.looks, schedule.Look{Cell: c, Topic: l.Topic})
		}
	}
	l.out.Again = l.out.Again || len(l.looks) > 0
	return l.sendAll(ctx)
}

// sendAll sends schedules. Those that change meanwhile are read again.
func (l mover) sendAll(ctx context.Context) error {
	for range commitRounds {
		var commits []store.Commit
		now := l.Now()
		for _, look := range l.looks {
			c, err := schedule.MoveOut(look, schedule.Env{Now: now, Lead: schedule.Lead})
			if err != nil {
				l.Log.Error("the cell of a schedule cannot be read", "topic", l.ID.Topic, "shard", l.ID.N, "cell", look.Cell.ID.Key(), "err", err)
			}
			commits = append(commits, c)
		}
		if len(commits) == 0 {
			return nil
		}
		_, results, err := l.commitAll(ctx, l.ID, &l.Fence, commits)
		if err != nil {
			return err
		}
		looks := l.looks
		l.looks = nil
		for i := range results {
			look, r := looks[i], &results[i]
			switch {
			case r.Status == store.OK || r.Status == store.Stale && r.Cell.Version == 0:
				for _, gone := range commits[i].Removes {
					l.out.Removed = append(l.out.Removed, gone.ID)
				}
				continue
			case r.Status == store.Stale:
				look = schedule.Look{Cell: r.Cell, Topic: l.Topic}
			case r.Status == store.WrongState:
				look.Begun = append(look.Begun, r.ID)
			}
			l.looks = append(l.looks, look)
		}
	}
	return nil
}

// forward sends on what is told to schedules that are not here any more, each once.
func (l mover) forward(ctx context.Context, parcels []store.Parcel) error {
	tally, last, err := l.tally(ctx, l.ID, forwards)
	if err != nil {
		return err
	}
	c := store.Commit{Puts: []store.Put{tally}}
	for i := range parcels {
		if p := &parcels[i]; p.Number > last {
			c.Send = append(c.Send, schedule.Forward(p, l.ID.Topic))
			c.Puts[0].Body = strconv.AppendInt(nil, p.Number, 10)
		}
	}
	if len(c.Send) == 0 {
		return nil
	}
	_, results, err := l.commitAll(ctx, l.ID, &l.Fence, []store.Commit{c})
	if err == nil && results[0].Status != store.OK && !schedule.Landed(&c, &results[0]) {
		err = store.ErrUnavailable // another owner was quicker: the next look knows
	}
	return err
}

// handOn delivers parcels of the out-box, in order of their numbers for each shard that they
// go to, and reports whether there are more. A shard remembers in a cell, the tally, what it
// got of this one: so each arrives once, however often it is sent.
func (l mover) handOn(ctx context.Context) (more bool, err error) {
	parcels, err := l.outgoing(ctx)
	if err != nil || len(parcels) == 0 {
		return false, err
	}
	byShard := make(map[store.Shard][]store.Parcel)
	var order []store.Shard
	var arrived []int64
	for _, p := range parcels {
		to, there, err := l.destination(ctx, &p)
		if err != nil {
			return false, err
		}
		if there {
			arrived = append(arrived, p.Number)
			continue
		}
		if byShard[to] == nil {
			order = append(order, to)
		}
		byShard[to] = append(byShard[to], p)
	}
	for _, to := range order {
		numbers, err := l.deliver(ctx, to, byShard[to])
		if err != nil {
			return false, err
		}
		arrived = append(arrived, numbers...)
	}
	if len(arrived) == 0 {
		return false, nil
	}
	_, _, err = l.commitAll(ctx, l.ID, &l.Fence, []store.Commit{{Drop: arrived}})
	return true, err
}

// outgoing returns the first parcels of the out-box that are for schedules. The others are the
// courier's.
func (l mover) outgoing(ctx context.Context) (found []store.Parcel, err error) {
	for after := int64(0); len(found) == 0; {
		page, err := l.Store.Parcels(ctx, l.ID, store.OutBox, after, batch)
		if err != nil || len(page) == 0 {
			return nil, err
		}
		after = page[len(page)-1].Number
		found = slices.DeleteFunc(page, func(p store.Parcel) bool { return sent.Crosses(&p) })
	}
	return found, nil
}

// tallyOf is the cell in which other shards remember what they got of this one.
func (l mover) tallyOf() store.CellID { return store.CellID(tallyPrefix + strconv.Itoa(l.ID.N)) }

// destination is the shard that a parcel goes to. It has arrived if that shard has it, or one
// that the parcel went to before there were newer ones.
func (l mover) destination(ctx context.Context, p *store.Parcel) (to store.Shard, there bool, err error) {
	shards := schedule.Shards(l.Topic, p.To.Key())
	for _, s := range shards {
		if s.N <= l.ID.N { // older ones are not asked
			break
		}
		last, known := l.tallies[s]
		if !known {
			if _, last, err = l.tally(ctx, s, l.tallyOf()); err != nil {
				return to, false, err
			}
			if l.tallies == nil {
				l.tallies = make(map[store.Shard]int64)
			}
			l.tallies[s] = last
		}
		if last >= p.Number {
			return to, true, nil
		}
	}
	return shards[0], false, nil
}

// deliver puts parcels into the in-box of another shard.
func (l mover) deliver(ctx context.Context, to store.Shard, parcels []store.Parcel) (numbers []int64, err error) {
	tally, last, err := l.tally(ctx, to, l.tallyOf())
	if err != nil {
		return nil, err
	}
	c := store.Commit{Puts: []store.Put{tally}}
	for _, p := range parcels {
		numbers = append(numbers, p.Number)
		if p.Number > last {
			c.Send = append(c.Send, store.Parcel{To: p.To, Body: p.Body})
			c.Puts[0].Body = strconv.AppendInt(nil, p.Number, 10)
		}
	}
	if len(c.Send) == 0 {
		return numbers, nil
	}
	_, results, err := l.commitAll(ctx, to, nil, []store.Commit{c})
	if err != nil {
		return nil, err
	}
	if r := &results[0]; r.Status != store.OK && !schedule.Landed(&c, r) {
		return nil, store.ErrUnavailable // a former owner of this shard was quicker: the next look knows
	}
	l.out.Told = append(l.out.Told, to)
	return numbers, nil
}

// tally reads a cell that remembers a number, and returns how it is changed.
func (l mover) tally(ctx context.Context, s store.Shard, id store.CellID) (put store.Put, last int64, err error) {
	cells, err := l.Store.Cells(ctx, s, []store.CellID{id})
	if err != nil {
		return put, 0, err
	}
	if cells[0].Version != 0 {
		if last, err = strconv.ParseInt(string(cells[0].Body), 10, 64); err != nil {
			return put, 0, err
		}
	}
	return store.Put{Cell: store.Cell{ID: id}, If: cells[0].Version}, last, nil
}

// tidy deletes the tallies of a shard that has nothing else, once those that they are of are
// gone, or have nothing left of what they count. A shard without cells and tasks is retired.
func (l mover) tidy(ctx context.Context) error {
	if l.out.Progress.Heard > l.out.Progress.Taken || l.out.Again {
		return nil
	}
	cells, _, err := l.Store.CellPage(ctx, l.ID, store.CellTally, "", batch)
	if err != nil {
		return err
	}
	var commits []store.Commit
	for _, c := range cells {
		source, of := strings.CutPrefix(string(c.ID), tallyPrefix)
		n, err := strconv.Atoi(source)
		over := c.ID == forwards || c.ID == homewards || of && err == nil && !hasShard(l.Topic, n)
		if from, crosses := sent.From(c.ID); crosses {
			if over, err = l.isPast(ctx, from, c.Body); err != nil {
				return err
			}
		}
		if over {
			commits = append(commits, store.Commit{Puts: []store.Put{{Cell: store.Cell{ID: c.ID}, If: c.Version}}})
		}
	}
	if len(commits) == 0 {
		return nil
	}
	_, _, err = l.commitAll(ctx, l.ID, &l.Fence, commits)
	return err
}

// isPast reports whether a shard has no parcel left that a tally of it says was taken.
func (l mover) isPast(ctx context.Context, from store.Shard, tally []byte) (bool, error) {
	last, err := strconv.ParseInt(string(tally), 10, 64)
	if err != nil {
		return false, err
	}
	first, err := l.Store.Parcels(ctx, from, store.OutBox, 0, 1)
	return err == nil && (len(first) == 0 || first[0].Number > last), err
}

func hasShard(t *store.Topic, n int) bool {
	return slices.ContainsFunc(t.Spans(), func(s store.Span) bool { return n >= s.First && n < s.First+s.Shards })
}
