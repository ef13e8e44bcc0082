package relay

import (
	"context"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

// finish forgets what is settled. What takes the place of a refused message is in the same commit: a dead letter
// for the task of an ack, and for a step or a child the end that its workflow is told.
func (t *turn) finish(ctx context.Context) error {
	var c store.Commit
	var numbers []int64
	for _, it := range t.items {
		if it.state != settled {
			continue
		}
		numbers = append(numbers, it.Number)
		if it.why == "" {
			continue
		}
		if err := t.instead(&c, it); err != nil {
			return err
		}
	}
	for _, n := range t.page.Unreadable { // nobody can make it, and nothing can be kept of it
		numbers = append(numbers, n)
		t.out.Undeliverable++
		t.Log.Error("message cannot be read", "topic", t.ID.Topic, "shard", t.ID.N, "to", t.Queue.To, "number", n)
	}
	if len(numbers) == 0 {
		return nil
	}
	t.forget(&c, numbers)
	err := t.commitHome(ctx, &c)
	for _, it := range t.items {
		switch {
		case it.state != settled:
		case err != nil: // what became of it is not known: it is read again
			it.state = waits
		default:
			it.state = forgotten
		}
	}
	return err
}

// forget has a commit of the owner forget messages of the queue.
func (t *turn) forget(c *store.Commit, numbers []int64) {
	if c.From = t.home; t.Walk != nil {
		c.Drop = numbers
		return
	}
	c.Finish = &store.Finish{Queue: t.Queue, Numbers: numbers}
}

// commitHome makes a commit of the owner in the shard itself.
func (t *turn) commitHome(ctx context.Context, c *store.Commit) error {
	done, err := t.commit(ctx, t.ID.For(t.Source.Life), &t.Fence, *c)
	switch {
	case err != nil:
		return err
	case done.Status != store.OK:
		return store.ErrUnavailable
	}
	if len(c.Send) > 0 {
		t.out.Told = append(t.out.Told, fleet.Committed{Shard: t.ID, Commit: *c, Stamp: done.stamp})
	}
	return nil
}

// instead adds to a commit what takes the place of a refused message.
func (t *turn) instead(c *store.Commit, it *item) error {
	if t.Queue.Class == store.ClassAsk {
		c.Send = append(c.Send, workflow.Vain(it.Message, t.Now()).Send...)
		return nil
	}
	if failed, isStep := workflow.Refused(it.Message, it.why, t.Now()); isStep {
		c.Send = append(c.Send, failed.Send...)
		return nil
	}
	kept, err := message.Refuse(it.Message, it.why, t.Now())
	if err != nil {
		return err
	}
	c.Puts = append(c.Puts, kept.Puts...)
	t.out.Undeliverable++
	t.Log.Warn("task undeliverable", "topic", t.ID.Topic, "shard", t.ID.N, "task", it.To.Key(), "to", t.Queue.To, "err", it.why)
	return nil
}
