package relay

import (
	"context"

	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/store"
)

// state is what is known of a message of a page.
type state uint8

const (
	open      state = iota // nothing
	waits                  // its shard takes it later
	settled                // it was made or refused, or is for nobody: the queue is to forget it
	forgotten              // it has
)

// item is a message of a page.
type item struct {
	*store.Message
	task   *store.Task   // of work that is no child
	places []store.Shard // in which it may be, the one for what is new first
	why    string        // it is refused for good; empty: it is not
	there  bool          // what it would make is there: it is settled, and makes nothing
	state  state
}

func (it *item) settle() { it.state = settled }

// refuse has an item refused for good: in the destination first, and then here.
func (it *item) refuse(why string) { it.why = why }

// read reads what the messages of the page are, and where they go.
func (t *turn) read(ctx context.Context) error {
	for i := range t.page.Messages {
		it := &item{Message: &t.page.Messages[i]}
		t.items = append(t.items, it)
		var err error
		switch {
		case t.to == nil && t.Queue.Class == store.ClassWork:
			it.refuse(t.gone)
			it.settle() // its shards refuse late calls by the topic's life
		case t.to == nil:
			it.settle()
			t.out.Forgotten++
		case t.Queue.Class == store.ClassWork:
			t.readWork(it)
		default:
			err = t.readCompletion(ctx, it)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *turn) readWork(it *item) {
	if it.places = placesOf(t.to, it.Message); message.Begins(it.Message) {
		return
	}
	task, err := message.Task(it.Message, t.to.Indexed)
	switch {
	case err != nil:
		it.refuse("it cannot be read: " + err.Error())
	case len(task.Payload) > t.to.MaxPayload:
		e := problem.BadField("payload", "PAYLOAD_TOO_LARGE", "payload has %d bytes; at most %d are allowed", len(task.Payload), t.to.MaxPayload)
		it.refuse(e.Error())
	}
	it.task = task
}

// readCompletion finds the shard of a workflow, which stays where it began. What is for one that is gone is
// forgotten.
func (t *turn) readCompletion(ctx context.Context, it *item) error {
	shards := workflow.Shards(t.to, it.To.Key())
	if len(shards) == 1 {
		it.places = shards
		return nil // its owner finds one that is not there
	}
	for _, s := range shards {
		found, err := t.Store.Cells(ctx, s, []store.CellID{it.To})
		if err != nil {
			return err
		}
		if found[0].Version != 0 {
			it.places = []store.Shard{s}
			return nil
		}
	}
	it.settle()
	t.out.Forgotten++
	return nil
}
