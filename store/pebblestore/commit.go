package pebblestore

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// Commit implements store.Cells. A full store refuses the call when a commit brings work.
func (s cellKeeper) Commit(ctx context.Context, name store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if err := checkPuts(commits); err != nil {
		return store.Stamp{}, nil, err
	}
	for i := range commits {
		if err := commits[i].CheckQueues(name, f); err != nil {
			return store.Stamp{}, nil, err
		}
	}
	results := make([]store.CommitResult, len(commits))
	carriesOn := !slices.ContainsFunc(commits, func(c store.Commit) bool { return life.BringsWork(&c) })
	stamp, err := s.change(ctx, name, access{grows: true, closed: true, full: carriesOn, fence: f}, func(t *transaction) (err error) {
		c := committer{transaction: t, life: name.Life, held: settler{t}, pending: editor{t}, adds: adder{transaction: t}}
		for i := range commits {
			if results[i], err = c.commit(&commits[i]); err != nil {
				return err
			}
			if made := commits[i].Made; made != nil && results[i].Status == store.OK {
				t.made = append(t.made, made)
			}
		}
		if c.keyed == 0 {
			return nil
		}
		if err := t.repeat(); err != nil { // it must find what the commits did
			return err
		}
		_, err = marks{t}.trim(2 * c.keyed)
		return err
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return stamp, results, nil
}

// committer makes commits. What one writes is in one batch, so that it happens as a whole:
// no more is applied in the midst of one.
type committer struct {
	*transaction
	life    uint64 // of the topic
	held    settler
	pending editor
	adds    adder
	heads   []cellHead    // of the cells that the commit puts
	free    []bool        // of the tasks that it adds: there is none of the id, as was looked up
	receipt store.Receipt // of what the commit receives
	keyed   int           // tasks that were added under keys
}

func (t *committer) commit(c *store.Commit) (store.CommitResult, error) {
	if t.follows(c) {
		if err := t.repeat(); err != nil {
			return store.CommitResult{}, err
		}
	}
	result, err := t.check(c)
	if err != nil || result.Status != store.OK {
		return result, err
	}
	result.Adds, err = t.make(c)
	return result, err
}

// follows reports whether a commit is about something that the batch changes: it must find
// that done.
func (t *committer) follows(c *store.Commit) bool {
	changed := func(id string) bool {
		t.key = appendIDKey(t.key[:0], t.sh.number, tableTasks, id)
		return t.ids.came(id) || t.ids.wasNew(t.key)
	}
	if c.Keyed() && t.puts != nil || c.Receive != nil && t.cellIDs.came(string(c.Receive.Queue.ReceiptID())) {
		return true
	}
	return slices.ContainsFunc(c.Puts, func(p store.Put) bool { return t.cellIDs.came(string(p.ID)) }) ||
		slices.ContainsFunc(c.Under, func(h store.Holder) bool { return changed(h.ID) }) ||
		slices.ContainsFunc(c.Acks, func(a store.Ack) bool { return changed(a.ID) }) ||
		slices.ContainsFunc(c.Adds, func(task *store.Task) bool { return changed(task.ID) }) ||
		slices.ContainsFunc(c.Removes, func(r store.Remove) bool { return changed(r.ID) }) ||
		slices.ContainsFunc(c.Cancels, changed)
}

// check says whether a commit can be made.
func (t *committer) check(c *store.Commit) (store.CommitResult, error) {
	if result, err := t.checkReceive(c); err != nil || result.Status != store.OK {
		return result, err
	}
	if result, err := t.checkPuts(c); err != nil || result.Status != store.OK {
		return result, err
	}
	if result, err := t.checkHolds(c); err != nil || result.Status != store.OK {
		return result, err
	}
	if result, err := t.checkTasks(c); err != nil || result.Status != store.OK {
		return result, err
	}
	if t.sh.meta.sealed && !life.TakesSealed(c, t.there(c)) {
		return store.CommitResult{Status: store.Closed}, nil
	}
	return store.CommitResult{Status: store.OK}, nil
}

func (t *committer) checkPuts(c *store.Commit) (store.CommitResult, error) {
	t.heads = t.heads[:0]
	for i := range c.Puts {
		p := &c.Puts[i]
		head, err := t.cells.head(p.ID)
		if err != nil {
			return store.CommitResult{}, err
		}
		t.heads = append(t.heads, head)
		if status := life.Put(p, head.version); status != store.OK {
			cell, err := t.cells.get(p.ID)
			return store.CommitResult{Status: status, Cell: cell}, err
		}
	}
	return store.CommitResult{Status: store.OK}, nil
}

func (t *committer) checkHolds(c *store.Commit) (store.CommitResult, error) {
	alive := func(id string, token store.Token) bool {
		h := t.sh.holds.get(id)
		if h == nil {
			return false
		}
		rules := h.life()
		return life.Ack(&rules, token) == store.OK
	}
	for _, h := range c.Under {
		if !alive(h.ID, h.Token) {
			return store.CommitResult{Status: store.HoldLost, ID: h.ID}, nil
		}
	}
	for i := range c.Acks {
		a := &c.Acks[i]
		if !alive(a.ID, a.Token) {
			return store.CommitResult{Status: store.HoldLost, ID: a.ID}, nil
		}
		if status, err := t.held.says(t.sh.holds.get(a.ID), a); err != nil || status != store.OK {
			return store.CommitResult{Status: status, ID: a.ID}, err
		}
	}
	return store.CommitResult{Status: store.OK}, nil
}

func (t *committer) checkTasks(c *store.Commit) (store.CommitResult, error) {
	for _, r := range c.Removes {
		if r.Dead {
			if _, dead, err := t.dead(r.ID); err != nil || !dead {
				return store.CommitResult{Status: store.WrongState, ID: r.ID}, err
			}
		}
		if r.Due == 0 {
			continue
		}
		e, phase, _, err := t.pending.look(r.ID)
		if err != nil {
			return store.CommitResult{}, err
		}
		if !life.Untouched(phase, e.attempt, e.due, r.Due) {
			return store.CommitResult{Status: store.WrongState, ID: r.ID}, nil
		}
	}
	t.free = append(t.free[:0], make([]bool, len(c.Adds))...)
	for i, task := range c.Adds {
		t.key = appendIDKey(t.key[:0], t.sh.number, tableTasks, task.ID)
		if task.Key != nil || t.ids.above(t.key) {
			continue
		}
		e, f, err := t.find(task.ID)
		if err != nil {
			return store.CommitResult{}, err
		}
		if e.phase(f).Live() {
			return store.CommitResult{Status: store.Conflict, ID: task.ID}, nil
		}
		t.free[i] = f == absent
	}
	return store.CommitResult{Status: store.OK}, nil
}

// dead looks for a dead task.
func (t *committer) dead(id string) (entry, bool, error) {
	e, f, err := t.find(id)
	return e, err == nil && life.Requeue(e.phase(f)) == store.OK, err
}

// there tells which of the cells that a commit puts were there.
func (t *committer) there(c *store.Commit) func(store.CellID) bool {
	old := make(map[store.CellID]bool, len(c.Puts))
	for i := range c.Puts {
		old[c.Puts[i].ID] = t.heads[i].version != 0
	}
	return func(id store.CellID) bool { return old[id] }
}

// make makes a commit that was checked.
func (t *committer) make(c *store.Commit) ([]store.AddResult, error) {
	if err := t.endTasks(c); err != nil {
		return nil, err
	}
	adds, err := t.addAll(c)
	if err != nil {
		return nil, err
	}
	for i := range c.Puts {
		p := &c.Puts[i]
		t.cellIDs.note(string(p.ID))
		if err := t.cells.put(p, &t.heads[i]); err != nil {
			return nil, err
		}
	}
	if c.Receive != nil {
		if err := t.receive(c.Receive, adds); err != nil {
			return nil, err
		}
	}
	return adds, t.move(c)
}

// addAll adds the tasks of a commit. It says what became of them if one has a key.
func (t *committer) addAll(c *store.Commit) ([]store.AddResult, error) {
	if c.Keyed() {
		return t.addKeyed(c)
	}
	for i, task := range c.Adds {
		if err := t.add(task, t.free[i]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// move appends to boxes and queues, and forgets what is in them.
func (t *committer) move(c *store.Commit) error {
	for i := range c.Send {
		p := &c.Send[i]
		if p.Class != 0 {
			if err := t.queues.push(p, c, t.life); err != nil {
				return err
			}
		} else if err := t.boxes.push(p); err != nil {
			return err
		}
	}
	if err := t.boxes.take(c.Take); err != nil {
		return err
	}
	if err := t.boxes.drop(c.Drop); err != nil || c.Finish == nil {
		return err
	}
	return t.queues.finish(c.Finish)
}

// endTasks does what a commit says to tasks that there are. A task that it names twice is
// changed once.
func (t *committer) endTasks(c *store.Commit) error {
	for i := range c.Acks {
		a := &c.Acks[i]
		if t.ids.came(a.ID) {
			continue
		}
		t.ids.note(a.ID)
		if err := t.held.done(t.sh.holds.get(a.ID), a, c.Retention); err != nil {
			return err
		}
	}
	for _, r := range c.Removes {
		if t.ids.came(r.ID) {
			continue
		}
		if r.Dead {
			if err := t.removeDead(r.ID); err != nil {
				return err
			}
			continue
		}
		e, phase, _, err := t.pending.look(r.ID)
		if err != nil {
			return err
		}
		if life.Change(phase) != store.OK {
			continue
		}
		t.ids.note(r.ID)
		if err := t.pending.drop(r.ID, &e); err != nil {
			return err
		}
	}
	for _, id := range c.Cancels {
		h := t.sh.holds.get(id)
		if h == nil || t.ids.came(id) {
			continue
		}
		t.ids.note(id)
		if err := t.held.mark(h); err != nil {
			return err
		}
	}
	return nil
}

func (t *committer) removeDead(id string) error {
	e, dead, err := t.dead(id)
	if err != nil || !dead {
		return err
	}
	t.ids.note(id)
	_, err = deadLetters{t.transaction}.remove(id, &e)
	return err
}

// add adds a task that is absent, done or dead. free: it is known to be absent.
func (t *committer) add(task *store.Task, free bool) error {
	t.key = appendIDKey(t.key[:0], t.sh.number, tableTasks, task.ID)
	if t.ids.came(task.ID) || t.ids.wasNew(t.key) {
		return nil
	}
	if t.ids.isNew(t.key) {
		_, err := t.adds.insert(task, nil, false)
		return err
	}
	t.ids.note(task.ID)
	if free {
		_, err := t.adds.insert(task, nil, false)
		return err
	}
	old, f, err := t.find(task.ID)
	if err != nil {
		return err
	}
	if f == absent {
		_, err = t.adds.insert(task, nil, false)
	} else {
		_, err = t.adds.again(task, nil, &old)
	}
	return err
}
