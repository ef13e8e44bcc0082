package newtask

import (
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// Room is where what only some tasks have is kept, in one piece for all tasks of a frame. The zero
// value works, and allocates for each.
type Room struct {
	attributes []store.Attribute
	traces     []store.Trace
}

// RoomFor has room for what requests have.
func RoomFor(requests []*ddqv1.EnqueueRequest) Room {
	attributes, traces := 0, 0
	for _, r := range requests {
		attributes += len(r.Attributes)
		if r.Traceparent != "" {
			traces++
		}
	}
	return Room{make([]store.Attribute, 0, attributes), make([]store.Trace, 0, traces)}
}

// readTrace reads the trace context of a request. It is false when anything was left out.
func (room *Room) readTrace(t *service.NewTask, r *ddqv1.EnqueueRequest) (whole bool) {
	if r.Traceparent == "" {
		return r.Tracestate == ""
	}
	room.traces = append(room.traces, store.Trace{})
	t.Task.Trace, whole = wire.ReadTraceTo(&room.traces[len(room.traces)-1], r.Traceparent, r.Tracestate)
	return whole
}
