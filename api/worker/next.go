package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// The most that one ack enqueues.
const (
	MaxEnqueue      = 100
	MaxEnqueueBytes = 1 << 20 // of payload
)

// maxBeside is more than ids, keys and attributes of one task may have. A frame has those of many
// tasks, and must not fail for one of them.
const maxBeside = 64 << 10

// ending is what goes with the ack of a task. It is the handler's until that has returned.
type ending struct {
	result []byte
	tasks  []client.Task
	next   []*ddqv1.EnqueueRequest // the same
	bytes  int32                   // of their payload
	whole  int32                   // bytes of them as they are sent
	grow   *ddqv1.Growth           // nil: nothing
	grown  int32                   // bytes of it
	items  int32                   // in it

	trace Trace           // of the attempt: of what Enqueue is given, and kept with it
	of    *held           // the task's; nil: no worker made it
	codec client.Codec    // of what Enqueue and Grow are given; nil: as it is
	ctx   context.Context // the handler's; with a codec
}

// size is how many bytes go with the ack, and what its many items count.
func (e *ending) size() int { return len(e.result) + int(e.whole+e.grown+itemBytes*e.items) }

// itemBytes is what an item of a repeated field counts beside its bytes: a server takes 65,536 in a message.
const itemBytes = 96

// mostWhole is as much of what an ack enqueues as is counted: it is refused long before.
const mostWhole = 1 << 28

// sizeOf is what a message counts of a frame, with so many items in it.
func sizeOf(m proto.Message, items int) int { return proto.Size(m) + itemBytes*(items+1) }

func (e *ending) request(t client.Task) (*ddqv1.EnqueueRequest, error) {
	t, err := t.Encoded(e.ctx, e.codec)
	if err != nil {
		return nil, err
	}
	r, err := t.Request()
	if err == nil {
		r.Traceparent, r.Tracestate = e.trace.Parent, e.trace.State
	}
	return r, err
}

// TraceNext says in which trace context the attempt is: what Enqueue gets from now on carries it, and
// the server keeps the id of its trace with the attempt, if it is recorded. It is for middleware, which
// calls it before the handler begins; package api/tracing has one.
func (t Task) TraceNext(c Trace) {
	if t.ending != nil {
		t.ending.trace = c
	}
}

// Enqueue has tasks enqueued with the ack, or not at all: they are there if and only if the task
// is done. It counts when the handler returns nil after it. What the server would refuse is said
// then, and fails the attempt; a topic that is full or paused refuses none, they wait for it. It
// fails for more than MaxEnqueue tasks or MaxEnqueueBytes together. It is the handler's to call,
// before it returns, from one goroutine at a time.
func (t Task) Enqueue(tasks ...client.Task) error {
	if t.ending == nil {
		return nil
	}
	next, bytes, whole := slices.Clone(t.ending.next), int(t.ending.bytes), int(t.ending.whole)
	for i := range tasks {
		r, err := t.ending.request(tasks[i])
		if err != nil {
			return err
		}
		if beside := proto.Size(r) - len(r.Payload); beside > maxBeside {
			return fmt.Errorf("a task to be enqueued with the ack has %d bytes beside its payload; at most %d are allowed", beside, maxBeside)
		}
		next, bytes, whole = append(next, r), bytes+len(r.Payload), whole+sizeOf(r, len(r.Attributes))
	}
	switch {
	case len(next) > MaxEnqueue:
		return fmt.Errorf("%d tasks to be enqueued with the ack; at most %d are allowed", len(next), MaxEnqueue)
	case bytes > MaxEnqueueBytes:
		return fmt.Errorf("tasks to be enqueued with the ack have %d bytes of payload; at most %d are allowed", bytes, MaxEnqueueBytes)
	}
	t.ending.next, t.ending.bytes, t.ending.whole = next, int32(bytes), int32(min(whole, mostWhole))
	t.ending.tasks = append(t.ending.tasks, tasks...)
	return nil
}

// Enqueued returns what Enqueue was given. Of a task that neither a worker nor NewTask made it
// is always empty.
func (t Task) Enqueued() []client.Task {
	if t.ending == nil {
		return nil
	}
	return t.ending.tasks
}

// nextRefused makes an ack a failure of the attempt when the server refuses what it enqueues or
// adds to its workflow. It ends the hold, which no repeat of the ack would; mu is held.
func (h *held) nextRefused(err *ddqv1.Error) bool {
	enqueue := len(h.ack.Enqueue) > 0 && strings.HasPrefix(err.GetField(), "enqueue")
	grow := h.ack.Grow != nil && (strings.HasPrefix(err.GetField(), "grow") || codes.Code(err.GetCode()) == codes.PermissionDenied)
	if h.nack != nil || !enqueue && !grow {
		return false
	}
	h.nack = &ddqv1.Nack{TaskId: h.ack.TaskId, HoldToken: h.ack.HoldToken, Error: shorten(err.GetField() + ": " + err.GetMessage()), TraceId: h.ack.TraceId, Traceparent: h.ack.GetGrow().GetTraceparent()}
	h.ack.Enqueue, h.ack.Grow, h.ack.Result = nil, nil, nil
	return true
}
