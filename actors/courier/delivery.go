package courier

import (
	"context"
	"slices"
	"strconv"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/sent"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// item is a parcel and the task that is in it.
type item struct {
	parcel *store.Parcel
	task   *store.Task // nil: it brings a child
}

// delivery brings tasks and children to one shard of a topic, in order of their numbers.
type delivery struct {
	*round
	topic   *store.Topic
	to      store.Shard
	items   []item
	arrived []int64
}

// tally is what a shard remembers of this one.
type tally struct {
	version, last int64
}

func (d *delivery) run(ctx context.Context) error {
	for len(d.items) > 0 {
		one := &d.items[0]
		there, err := d.taken(ctx, one)
		if err != nil {
			return err
		}
		if there {
			d.pass(1)
			continue
		}
		if one.task == nil {
			err = d.begin(ctx, one)
		} else {
			err = d.addNext(ctx, one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addNext makes the task of the first item, with those behind it that one commit makes as well.
func (d *delivery) addNext(ctx context.Context, one *item) error {
	what, err := d.besideOthers(ctx, one)
	switch {
	case err != nil:
		return err
	case what == free:
		n := d.plain()
		return d.add(ctx, n, d.tasks(n))
	case what == made:
		return d.add(ctx, 1, nil)
	}
	return nil
}

// pass counts the first n as arrived.
func (d *delivery) pass(n int) {
	for _, it := range d.items[:n] {
		d.arrived = append(d.arrived, it.parcel.Number)
	}
	d.items = d.items[n:]
}

// plain is how many of the items, from the first on, one commit makes.
func (d *delivery) plain() int {
	if place.Resharding(d.topic) {
		return 1 // each is looked for in the former shards
	}
	ids := make(map[string]bool)
	for i, it := range d.items {
		if it.task == nil || it.task.Key != nil || ids[it.task.ID] {
			return max(i, 1)
		}
		ids[it.task.ID] = true
	}
	return len(d.items)
}

func (d *delivery) tasks(n int) []*store.Task {
	tasks := make([]*store.Task, n)
	for i := range tasks {
		tasks[i] = d.items[i].task
	}
	return tasks
}

// taken reports whether the shard has taken an item before, or one that it went to before
// there were newer ones.
func (d *delivery) taken(ctx context.Context, it *item) (bool, error) {
	for _, s := range placesOf(d.topic, it.parcel) {
		known, err := d.tallyOf(ctx, s)
		if err != nil || known.last >= it.parcel.Number {
			return err == nil, err
		}
	}
	return false, nil
}

func (d *delivery) tallyOf(ctx context.Context, s store.Shard) (*tally, error) {
	if known := d.tallies[s]; known != nil {
		return known, nil
	}
	known, err := d.readTally(ctx, s, d.tallyID())
	if err == nil {
		d.tallies[s] = known
	}
	return known, err
}

// readTally reads what a shard remembers of this one.
func (r *round) readTally(ctx context.Context, s store.Shard, id store.CellID) (*tally, error) {
	cells, err := r.Store.Cells(ctx, s, []store.CellID{id})
	if err != nil {
		return nil, err
	}
	known := new(tally)
	return known, known.read(cells[0])
}

func (d *delivery) tallyID() store.CellID { return sent.Tally(d.ID, d.Topic.Life) }

func (t *tally) read(c store.Cell) (err error) {
	*t = tally{version: c.Version}
	if c.Version != 0 {
		t.last, err = strconv.ParseInt(string(c.Body), 10, 64)
	}
	return err
}

// add makes tasks of the first n items, and has the tally say that they are taken. Those that
// are in the way of it are dealt with, and the rest is for another try.
func (d *delivery) add(ctx context.Context, n int, tasks []*store.Task) error {
	done, raised, err := d.counted(ctx, n, store.Commit{Adds: tasks})
	switch {
	case err != nil:
		return err
	case raised:
		d.note(d.to, done.stamp.Seq, tasks) // a hint, if they were made by another try
		return nil
	case done.Status == store.Conflict:
		return d.meet(ctx, done.ID)
	}
	return nil
}

// begin puts the child of the first item, and has the tally say that it is there.
func (d *delivery) begin(ctx context.Context, one *item) error {
	c, err := workflow.Arrived(one.parcel, d.Now())
	if err != nil {
		return d.reject(ctx, 0, err.Error())
	}
	done, raised, err := d.counted(ctx, 1, c)
	switch {
	case err != nil:
		return err
	case raised:
		d.out.Told = append(d.out.Told, fleet.Committed{Shard: d.to, Commit: c, Stamp: done.stamp})
	case done.Cell.ID == c.Puts[0].ID && workflow.Brought(done.Cell, one.parcel):
		d.pass(1)
	case done.Cell.ID == c.Puts[0].ID:
		return d.reject(ctx, 0, "ID_CONFLICT: another workflow has the id")
	}
	return nil
}

// counted makes a commit that brings the first n items, and has the tally say that they are taken.
// raised: it says so now, by this commit or by one before.
func (d *delivery) counted(ctx context.Context, n int, c store.Commit) (done committed, raised bool, err error) {
	known, err := d.tallyOf(ctx, d.to)
	if err != nil {
		return done, false, err
	}
	last, was := d.items[n-1].parcel.Number, known.last
	raise := store.Put{Cell: store.Cell{ID: d.tallyID(), Body: strconv.AppendInt(nil, last, 10)}, If: known.version}
	c.Puts = append([]store.Put{raise}, c.Puts...) // it is what is in the way when this was made before
	if done, err = d.commit(ctx, d.to, d.topic.Life, nil, c); err != nil {
		return done, false, err
	}
	switch {
	case done.Status == store.OK:
		*known = tally{known.version + 1, last}
		d.pass(n)
	case done.Status == store.Stale && done.Cell.ID == d.tallyID(): // a lost answer, or a former owner of this shard
		err = known.read(done.Cell)
	case done.Status != store.Stale && done.Status != store.Conflict:
		err = store.ErrSealed
	}
	return done, known.last > was, err
}

// note notes tasks that became pending.
func (d *delivery) note(at store.Shard, seq int64, tasks []*store.Task) {
	if len(tasks) == 0 {
		return
	}
	d.out.Made = append(d.out.Made, Made{Shard: at, Seq: seq, Tasks: store.EntriesOf(tasks)})
}

// meet deals with a task whose id a live one has: it is that one, or it cannot be delivered.
func (d *delivery) meet(ctx context.Context, id string) error {
	_, found, err := d.Tasks.Get(ctx, d.to, []string{id})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(d.items, func(it item) bool { return it.task.ID == id })
	if !found[0].State.Live() || i < 0 {
		return nil // it has ended meanwhile
	}
	return d.settle(ctx, i, &found[0])
}

// settle takes an item out whose id a live task has.
func (d *delivery) settle(ctx context.Context, i int, live *store.Snapshot) error {
	it := d.items[i]
	if live.Fingerprint != it.task.Fingerprint {
		return d.reject(ctx, i, "ID_CONFLICT: another task has the id")
	}
	d.arrived = append(d.arrived, it.parcel.Number)
	d.items = slices.Delete(d.items, i, i+1)
	return nil
}

// reject keeps an item as undeliverable. It is forgotten in the out-box by that.
func (d *delivery) reject(ctx context.Context, i int, why string) error {
	if err := d.refuse(ctx, d.items[i].parcel, why); err != nil {
		return err
	}
	d.items = slices.Delete(d.items, i, i+1)
	return nil
}
