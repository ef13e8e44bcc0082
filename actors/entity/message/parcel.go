// Package message is what shards send each other: tasks that acks and steps enqueue, children of workflows, what is
// asked of both, and ends. It has their encodings, what is kept of those that cannot be delivered, and how the
// tallies are called of what came out of an out-box of before. It is pure.
//
//	ack, step ─ one commit ─▶ queue ─ relay ─▶ shard of the topic, with a receipt
//	                                    └────▶ undeliverable, in the shard that sent it
package message

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// Parcel is a task as it is sent to a topic.
func Parcel(topic string, t *store.Task) (store.Parcel, error) {
	body, err := record.EncodeSent(t)
	return store.Parcel{Class: store.ClassWork, Topic: topic, To: store.CellID(store.CellTask) + store.CellID(t.ID), Body: body}, err
}

// Ask is a parcel that asks a task of a topic to end, on behalf of a workflow in the shard that
// sends it.
func Ask(topic, task, workflow string) store.Parcel {
	return store.Parcel{Class: store.ClassAsk, Topic: topic, To: store.CellID(store.CellAsk) + store.CellID(task), Body: []byte(workflow)}
}

// Crosses reports whether a parcel of an out-box is for another topic, or brings a task: then the
// relay carries it.
func Crosses(p *store.Parcel) bool { return Brings(p) || Asks(p) || IsForWorkflow(p) }

// Brings reports whether a parcel brings what its topic has to take: a task, or a child of a workflow.
func Brings(p *store.Parcel) bool { return HasTask(p) || Begins(p) }

// HasTask reports whether a parcel brings a task.
func HasTask(p *store.Parcel) bool { return p.To.Kind() == store.CellTask }

// Begins reports whether a parcel begins a child of a workflow.
func Begins(p *store.Parcel) bool { return p.To.Kind() == store.CellBegin }

// Asks reports whether a parcel asks a task to end, or something of a child.
func Asks(p *store.Parcel) bool { return p.To.Kind() == store.CellAsk || Orders(p) }

// Orders reports whether a parcel asks something of a child.
func Orders(p *store.Parcel) bool { return p.To.Kind() == store.CellOrder }

// IsForWorkflow reports whether a parcel is for a workflow.
func IsForWorkflow(p *store.Parcel) bool { return p.To.Kind() == store.CellWorkflow }

// Task reads the task of a parcel, as the topic that it goes to indexes it.
func Task(p *store.Parcel, indexed store.IndexSet) (*store.Task, error) {
	t, err := record.DecodeSent(p.Body)
	if err == nil {
		t.Indexed = indexed
	}
	return t, err
}
