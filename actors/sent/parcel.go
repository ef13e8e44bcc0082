package sent

import (
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// Parcel is a task as it is sent to a topic.
func Parcel(topic string, t *store.Task) (store.Parcel, error) {
	body, err := record.EncodeSent(t)
	return store.Parcel{Topic: topic, To: store.CellID(store.CellTask) + store.CellID(t.ID), Body: body}, err
}

// HasTask reports whether a parcel brings a task.
func HasTask(p *store.Parcel) bool { return p.To.Kind() == store.CellTask }

// Task reads the task of a parcel, as the topic that it goes to indexes it.
func Task(p *store.Parcel, indexed store.IndexSet) (*store.Task, error) {
	t, err := record.DecodeSent(p.Body)
	if err == nil {
		t.Indexed = indexed
	}
	return t, err
}
