package server

import (
	"slices"

	"github.com/ddq-io/ddq/api/wire"

	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/watches"
	"github.com/ddq-io/ddq/store"
)

// The kinds of changes have the same numbers on the wire and in the store; the table is
// what is true if one of them ever moves.
var changeToWire = [...]ddqv1.ChangeKind{
	store.ChangeEnqueued:        ddqv1.ChangeKind_CHANGE_KIND_ENQUEUED,
	store.ChangeUpdated:         ddqv1.ChangeKind_CHANGE_KIND_UPDATED,
	store.ChangeHeld:            ddqv1.ChangeKind_CHANGE_KIND_HELD,
	store.ChangeReleased:        ddqv1.ChangeKind_CHANGE_KIND_RELEASED,
	store.ChangeRetrying:        ddqv1.ChangeKind_CHANGE_KIND_RETRYING,
	store.ChangeDone:            ddqv1.ChangeKind_CHANGE_KIND_DONE,
	store.ChangeDead:            ddqv1.ChangeKind_CHANGE_KIND_DEAD,
	store.ChangeDeleted:         ddqv1.ChangeKind_CHANGE_KIND_DELETED,
	store.ChangeRequeued:        ddqv1.ChangeKind_CHANGE_KIND_REQUEUED,
	store.ChangeCancelRequested: ddqv1.ChangeKind_CHANGE_KIND_CANCEL_REQUESTED,
}

// WatchTasks sends frames until the caller or the node goes away. One that does not take
// them in keeps nothing but its place: see package actors.
func (q *queue) WatchTasks(r *ddqv1.WatchTasksRequest, stream grpc.ServerStreamingServer[ddqv1.WatchTasksResponse]) error {
	o, e := watchOptions(r)
	if e != nil {
		return e
	}
	ctx, done := q.poll(stream.Context())
	defer done()
	w, err := q.service.Watches.Open(ctx, o)
	if err != nil {
		return q.pollError(stream.Context(), err)
	}
	defer w.Close()
	for {
		frame, err := w.Next(ctx)
		if err != nil {
			return q.pollError(stream.Context(), err)
		}
		if err := stream.Send(frameWire(&frame)); err != nil {
			return err
		}
	}
}

func watchOptions(r *ddqv1.WatchTasksRequest) (o watches.Options, e *problem.Error) {
	o = watches.Options{Topic: r.Topic, Last: int(r.Last), Filter: watches.Filter{IDs: r.Ids}}
	if len(r.Cursor) > 0 {
		o.Cursor = r.Cursor
	}
	switch r.From {
	case ddqv1.WatchFrom_WATCH_FROM_UNSPECIFIED, ddqv1.WatchFrom_WATCH_FROM_NOW:
	case ddqv1.WatchFrom_WATCH_FROM_OLDEST:
		o.Oldest = true
	default:
		return o, wire.Invalid("BAD_ENUM", "from", "has no value %d", r.From)
	}
	for _, kind := range r.Kinds {
		i := slices.Index(changeToWire[:], kind)
		if i < int(store.ChangeEnqueued) {
			return o, wire.Invalid("BAD_ENUM", "kinds", "has no value %d", kind)
		}
		o.Filter.Kinds = append(o.Filter.Kinds, store.ChangeKind(i))
	}
	for _, a := range r.Attributes {
		o.Filter.Attributes = append(o.Filter.Attributes, store.Attribute{Key: a.GetKey(), Value: a.GetValue()})
	}
	return o, nil
}

func frameWire(f *watches.Frame) *ddqv1.WatchTasksResponse {
	w := &ddqv1.WatchTasksResponse{Cursor: f.Cursor, Changes: make([]*ddqv1.TaskChange, len(f.Changes))}
	for i := range f.Changes {
		w.Changes[i] = changeWire(&f.Changes[i])
	}
	return w
}

func changeWire(c *watches.ShardChange) *ddqv1.TaskChange {
	return &ddqv1.TaskChange{
		Id:         c.ID,
		Kind:       wire.Enum(changeToWire[:], c.Kind),
		State:      wire.State(c.State()),
		TimeUnixUs: c.At.UnixMicro(),
		Attempt:    int32(c.Attempt),
		DueUnixMs:  int64(c.Due),
		Version:    c.Version,
		Reason:     wire.Enum(reasonToWire[:], c.Reason),
		Outcome:    wire.Enum(outcomeToWire[:], c.Outcome),
		Worker:     wire.Text(c.Worker),
		Shard:      int32(c.Shard),
		Position:   c.Position,
		Attributes: wire.PutAttributes(c.Attributes),
	}
}
