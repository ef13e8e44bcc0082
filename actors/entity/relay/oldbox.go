package relay

import (
	"context"
	"slices"
	"strconv"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// The out-box of a shard has what was sent by nodes that know no queues, or while such nodes were in the fleet. It is
// one more source of turns. What goes to all topics lies in it in one order, and what a destination remembers of it is
// no receipt but a tally: the highest number that it took. So two rules hold for it alone:
//
//   - A tally is a prefix: what is delivered to a shard is delivered in order, and what is refused is a dead letter here
//     before a tally passes it.
//   - What was passed over, as its topic or its shard takes nothing, stays passed over until the head is read again,
//     also when that takes something meanwhile: a tally would count it as arrived.
//
// Nodes of before read and write the same tallies, and may deliver from the same out-box as former owners.

// OldBox is the name of the out-box of before among queues: the zero Queue.
func OldBox() (q store.Queue) { return q }

// walkFor is how long a walk goes on at least where more is sent meanwhile.
const walkFor = 5000 // ms

// Walk is what turns of the out-box know that follow each other from its head. It ends where the out-box does, or once
// it has read as many messages as there were walkFor behind its beginning: what it passed over is tried again then.
type Walk struct {
	work   map[string]bool      // topics whose work waits
	ends   map[store.Shard]bool // shards whose completions wait
	passed int64                // messages that wait
	read   int64
	all    int64 // that it reads; 0: not known yet
	began  store.Millis
}

func newWalk(now store.Millis) *Walk {
	return &Walk{work: make(map[string]bool), ends: make(map[store.Shard]bool), began: now}
}

// blocks reports whether nothing of a queue's class goes to a shard any more in this walk.
func (w *Walk) blocks(q store.Queue, to store.Shard) bool {
	if q.Class == store.ClassWork {
		return w.work[q.To]
	}
	return w.ends[to]
}

func (w *Walk) block(q store.Queue, to store.Shard) {
	if q.Class == store.ClassWork { // the topic may get other shards meanwhile
		w.work[q.To] = true
	} else {
		w.ends[to] = true
	}
}

// tally is what a shard remembers of the out-box of this one.
type tally struct{ version, last int64 }

func (t *tally) read(c *store.Cell) (err error) {
	*t = tally{version: c.Version}
	if c.Version != 0 {
		t.last, err = strconv.ParseInt(string(c.Body), 10, 64)
	}
	return err
}

// raise notes that a commit counts some items.
func (t *tally) raise(some []*item) { *t = tally{t.version + 1, highest(some)} }

func highest(some []*item) (last int64) {
	for _, it := range some {
		last = max(last, it.Number)
	}
	return last
}

// walk carries a page of the out-box.
func (t *turn) walk(ctx context.Context) error {
	if t.Walk == nil || t.After == 0 {
		t.Walk, t.After = newWalk(t.Now()), 0
	}
	w := t.Walk
	t.home = t.Store.Server(ctx, t.ID)
	all, err := t.Store.Parcels(ctx, t.ID, store.OutBox, t.After, t.sizes.RelayPage)
	if err != nil {
		return err
	}
	for _, class := range [...]store.Class{store.ClassCompletion, store.ClassWork, store.ClassAsk} { // asks know what arrived
		byTopic, order := make(map[string][]store.Message), []string(nil)
		for _, m := range all {
			if classOf(&m) != class {
				continue
			}
			if byTopic[m.Topic] == nil {
				order = append(order, m.Topic)
			}
			byTopic[m.Topic] = append(byTopic[m.Topic], m)
		}
		for _, topic := range order {
			t.Queue = store.Queue{Source: t.ID.For(t.Source.Life), Class: class, To: topic}
			t.page = store.MessagePage{Messages: byTopic[topic]}
			if err := t.part(ctx); err != nil {
				return err
			}
		}
	}
	if len(all) == 0 {
		t.out.Walked, t.out.Waiting, t.out.Left = true, w.work, int(w.passed)
		return nil
	}
	return t.walkOn(ctx, all)
}

// walkOn says where the next turn of the walk begins.
func (t *turn) walkOn(ctx context.Context, all []store.Message) error {
	w := t.Walk
	w.read += int64(len(all))
	if t.out.More = true; t.Now()-w.began >= walkFor {
		if w.all == 0 {
			stats, err := t.Counts(ctx, []store.Shard{t.ID})
			if err != nil {
				return err
			}
			w.all = w.read + max(0, stats[0].Parcels-w.passed)
		}
		if w.read >= w.all {
			return nil
		}
	}
	t.out.After, t.out.Walk = all[len(all)-1].Number, w
	return nil
}

// classOf is the class of the queue that a message of the out-box would be in; 0 for one that stays in its topic.
func classOf(m *store.Message) store.Class {
	switch {
	case message.Brings(m):
		return store.ClassWork
	case message.Asks(m):
		return store.ClassAsk
	case message.IsForWorkflow(m):
		return store.ClassCompletion
	}
	return 0
}

// part carries the messages of a page that would be in one queue.
func (t *turn) part(ctx context.Context) error {
	t.items, t.tallies = nil, make(map[store.Shard]*tally)
	if err := t.find(ctx); err != nil {
		return err
	}
	t.noteServers(ctx)
	if t.Queue.Class == store.ClassWork && t.to != nil {
		takes, err := t.takesWork(ctx)
		if err != nil {
			return err
		}
		if !takes {
			t.Walk.work[t.to.Name] = true
			t.Walk.passed += int64(len(t.page.Messages))
			return nil
		}
	}
	_, err := t.settle(ctx)
	for _, it := range t.items {
		if it.state < settled {
			t.Walk.passed++
		}
	}
	return err
}

// takesWork reports whether the topic takes work now, and the walk has passed over none of it.
func (t *turn) takesWork(ctx context.Context) (bool, error) {
	if t.to.EnqueuePaused || t.Walk.blocks(t.Queue, store.Shard{}) {
		return false, nil
	}
	if t.to.MaxBacklog == 0 {
		return true, nil
	}
	stats, err := t.Counts(ctx, place.Shards(t.to))
	if err != nil {
		return false, err
	}
	pending := int64(0)
	for i := range stats {
		pending += stats[i].Pending
	}
	return pending < int64(t.to.MaxBacklog), nil
}

// tallyID is the entity in which the shards that the part goes to remember this one. Work may wait for its topic, and
// completions do not.
func (t *turn) tallyID() store.CellID {
	if t.Queue.Class == store.ClassCompletion {
		return message.EndTally(t.ID, t.Source.Life)
	}
	return message.Tally(t.ID, t.Source.Life)
}

func (t *turn) tallyOf(ctx context.Context, s store.Shard) (*tally, error) {
	if known := t.tallies[s]; known != nil {
		return known, nil
	}
	cells, err := t.Store.Cells(ctx, s, []store.CellID{t.tallyID()})
	if err != nil {
		return nil, err
	}
	known := new(tally)
	if err := known.read(&cells[0]); err != nil {
		return nil, err
	}
	t.tallies[s] = known
	return known, nil
}

// askTallies settles the items that a shard has taken: the one that they go to, or one that they went to before there
// were newer ones.
func (t *turn) askTallies(ctx context.Context) error {
	for _, it := range t.items {
		for _, s := range it.places {
			known, err := t.tallyOf(ctx, s)
			if err != nil {
				return err
			}
			if it.state == open && it.Number <= known.last {
				it.why = ""
				it.settle()
			}
		}
	}
	return nil
}

// goesAlone reports whether its shard decides about a task before the commit that counts it.
func (it *item) goesAlone() bool {
	return it.task != nil && !it.there && (it.task.Key != nil || len(it.places) > 1 && it.task.Traits.Ordering() != "")
}

// nextInOrder is the commit that settles the first of what is open, in order, up to what goes alone, is refused, or has
// an id that the commit has already. A first one that is refused is kept here instead.
func (d *delivery) nextInOrder(ctx context.Context) (c store.Commit, some []*item, err error) {
	known, err := d.tallyOf(ctx, d.to)
	if err != nil {
		return c, nil, err
	}
	c.Puts = []store.Put{{Cell: store.Cell{ID: d.tallyID()}, If: known.version}} // it is what is in the way when this was made before
	c.From = d.servers[d.to]
	ids := make(map[store.CellID]bool)
	var rest []*item
	for _, it := range d.items {
		if it.state != open {
			continue
		}
		first := len(some)+len(rest) == 0
		if first {
			if err := d.decide(ctx, it); err != nil {
				return c, nil, err
			}
		} else if it.why != "" || it.goesAlone() || ids[it.To] && d.Queue.Class == store.ClassWork {
			break
		}
		if it.task == nil && it.why == "" && !it.there {
			d.bring(&c, it)
		}
		if it.why != "" {
			if !first {
				break
			}
			it.settle()
			if err := d.finish(ctx); err != nil {
				return c, nil, err
			}
			continue
		}
		ids[it.To] = true
		if c.Puts[0].Body = strconv.AppendInt(nil, it.Number, 10); it.task == nil || it.there {
			rest = append(rest, it)
		} else {
			c.Adds, some = append(c.Adds, it.task), append(some, it)
		}
	}
	return c, append(some, rest...), nil
}

// decide has the shards decide about a task in which others of its keys may be, those of before first.
func (d *delivery) decide(ctx context.Context, it *item) error {
	if it.why != "" || !it.goesAlone() {
		return nil
	}
	for _, s := range slices.Concat(it.places[1:], it.places[:1]) {
		if s == d.to && it.task.Key == nil {
			return nil
		}
		if err := d.askKey(ctx, s, it); err != nil || it.there || it.why != "" {
			return err
		}
	}
	return store.ErrSealed // the topic has other shards by now
}

// recount reads a tally that was in the way of a commit: of a former owner of this shard, or of the same commit, whose
// answer was lost.
func (d *delivery) recount(c *store.Commit, some []*item, done *committed) error {
	known := d.tallies[d.to]
	if err := known.read(&done.Cell); err != nil {
		return err
	}
	if highest(some) <= known.last {
		d.take(c, some, done) // what it tells is a hint, if another one made them
		return nil
	}
	for _, it := range d.items {
		if it.state == open && it.Number <= known.last {
			it.why = ""
			it.settle()
		}
	}
	return nil
}
