package pebblestore

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// Checkpoint adds entries to the journals of tasks that are held.
func (s taskWriter) Checkpoint(ctx context.Context, name store.Shard, checkpoints []store.Checkpoint) (store.Stamp, []store.Status, error) {
	return changeEach(ctx, s.base, name, access{grows: true, closed: true}, len(checkpoints), func(t *transaction, i int) (store.Status, error) {
		return settler{t}.checkpoint(&checkpoints[i])
	})
}

func (t settler) checkpoint(c *store.Checkpoint) (store.Status, error) {
	if err := t.item(c.ID); err != nil {
		return 0, err
	}
	h := t.sh.holds.get(c.ID)
	if h == nil {
		e, f, err := t.find(c.ID)
		rules := e.life(f)
		return life.Checkpoint(&rules, c.Token), err
	}
	rules := h.life()
	if status := life.Checkpoint(&rules, c.Token); status != store.OK {
		return status, nil
	}
	status, err := t.journals.write(c.ID, &c.JournalEntry, t.ms)
	if err != nil || status != store.OK || h.taskJournal {
		return status, err
	}
	first := *h
	first.taskJournal = true
	t.next.extend(&first) // stored anew, as when it is extended
	return status, nil
}
