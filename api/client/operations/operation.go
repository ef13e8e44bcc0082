package operations

import (
	"time"

	"github.com/ddq-io/ddq/api/client/internal/wire"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// State is how far an operation is.
type State int32

// The states of operations. The last four are ends.
const (
	Unknown   State = State(ddqv1.OperationState_OPERATION_STATE_UNSPECIFIED)
	Waiting   State = State(ddqv1.OperationState_OPERATION_STATE_WAITING) // for others at its node
	Running   State = State(ddqv1.OperationState_OPERATION_STATE_RUNNING)
	Done      State = State(ddqv1.OperationState_OPERATION_STATE_DONE)
	Failed    State = State(ddqv1.OperationState_OPERATION_STATE_FAILED) // see Operation.Error; what was changed stays changed
	Stopped   State = State(ddqv1.OperationState_OPERATION_STATE_STOPPED)
	BrokenOff State = State(ddqv1.OperationState_OPERATION_STATE_BROKEN_OFF) // its node stopped, or fell silent: it may be started again
)

// String is done, broken_off and so on.
func (s State) String() string {
	return wire.Word(ddqv1.OperationState(s).String(), "OPERATION_STATE_")
}

// Ended reports whether nothing more happens.
func (s State) Ended() bool { return s >= Done }

// Operation is a change of many tasks.
type Operation struct {
	ID, Topic        string
	Action           string // delete_tasks, reschedule_tasks, requeue_dead_letters, delete_dead_letters or reencrypt
	State            State
	Matched, Changed int64
	Skipped          int64 // matched, and not changed
	Capped           bool  // there may be more that match
	Examined         int64 // by a dry run of dead letters
	Rate             int   // tasks a second at most; 0: as many as it goes
	Node             string
	StartedBy        string // empty where nobody has to say who calls
	Stopping         bool   // it was asked to
	Error            string // of one that failed, with its reason; else empty

	CreatedAt, BeganAt, EndedAt time.Time // zero: not yet
}

func fromWire(o *ddqv1.Operation) Operation {
	p, asked := o.GetProgress(), o.GetRequest()
	out := Operation{
		ID: o.GetId(), Topic: asked.GetTopic(), Action: actionOf(asked), State: State(o.GetState()), Rate: int(asked.GetRatePerS()),
		Matched: p.GetMatched(), Changed: p.GetChanged(), Skipped: p.GetSkipped(), Capped: p.GetCapped(), Examined: p.GetExamined(),
		Node: o.GetNode(), StartedBy: o.GetStartedBy(), Stopping: o.GetStopping(),
		CreatedAt: wire.UnixTime(o.GetCreatedUnixMs()), BeganAt: wire.UnixTime(o.GetBeganUnixMs()), EndedAt: wire.UnixTime(o.GetEndedUnixMs()),
	}
	if e := o.GetError(); e != nil {
		out.Error = e.GetReason() + ": " + e.GetMessage()
	}
	return out
}

// actionOf names what is done.
func actionOf(r *ddqv1.StartOperationRequest) string {
	m := r.ProtoReflect()
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("action")); f != nil {
		return string(f.Name())
	}
	return ""
}
