package operations

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/client/internal/call"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Change is what an operation does: one of the first five.
type Change struct {
	Delete      *ddqv1.TaskFilter       // pending tasks that it matches, which client.Filter.Wire makes
	Move        *Move                   // due times of pending tasks
	RequeueDead *ddqv1.DeadLetterFilter // dead letters that it matches, which client.DeadLetterFilter.Wire makes
	DeleteDead  *ddqv1.DeadLetterFilter
	Reencrypt   bool // what the store has, with the newest data keys; the topic is empty

	DryRun   bool  // count what matches, and change nothing; not of Reencrypt
	MaxTasks int64 // of Delete and Move: no more than these; 0 is 1,000,000
	Rate     int   // tasks a second at most, up to 100,000; 0: as many as it goes
}

// Move says when the tasks that a filter matches are due: at Due, or so long from now, or By from their
// own due times on; and each up to Spread later, by its id.
type Move struct {
	Filter *ddqv1.TaskFilter
	Due    time.Time      // zero: not at an instant
	Delay  *time.Duration // nil: not from now
	By     time.Duration
	Spread time.Duration
}

// Operations are the calls about changes that nobody waits for.
type Operations struct {
	do  call.Do
	rpc ddqv1.OperationServiceClient
}

// New returns calls that do makes.
func New(do call.Do, rpc ddqv1.OperationServiceClient) Operations { return Operations{do, rpc} }

// StartOperation has a node make a change, and returns as soon as that is written down. An operation about
// everything there is has an empty topic, here and below.
func (c Operations) StartOperation(ctx context.Context, topic string, change Change) (Operation, error) {
	r := &ddqv1.StartOperationRequest{Topic: topic, RatePerS: int64(change.Rate)}
	switch {
	case change.Delete != nil:
		r.Action = &ddqv1.StartOperationRequest_DeleteTasks{DeleteTasks: &ddqv1.OperationDelete{
			Filter: change.Delete, DryRun: change.DryRun, MaxTasks: change.MaxTasks,
		}}
	case change.Move != nil:
		r.Action = &ddqv1.StartOperationRequest_RescheduleTasks{RescheduleTasks: change.Move.wire(&change)}
	case change.RequeueDead != nil:
		r.Action = &ddqv1.StartOperationRequest_RequeueDeadLetters{RequeueDeadLetters: &ddqv1.OperationDeadLetters{Filter: change.RequeueDead, DryRun: change.DryRun}}
	case change.DeleteDead != nil:
		r.Action = &ddqv1.StartOperationRequest_DeleteDeadLetters{DeleteDeadLetters: &ddqv1.OperationDeadLetters{Filter: change.DeleteDead, DryRun: change.DryRun}}
	}
	if change.Reencrypt {
		r.Action = &ddqv1.StartOperationRequest_Reencrypt{Reencrypt: new(ddqv1.OperationReencrypt)}
	}
	reply, err := call.Answer(ctx, c.do, call.Once, c.rpc.StartOperation, r)
	return fromWire(reply.GetOperation()), err
}

func (m *Move) wire(of *Change) *ddqv1.OperationReschedule {
	w := &ddqv1.OperationReschedule{Filter: m.Filter, DryRun: of.DryRun, MaxTasks: of.MaxTasks}
	switch {
	case !m.Due.IsZero():
		w.When = &ddqv1.OperationReschedule_ExecuteTime{ExecuteTime: timestamppb.New(m.Due)}
	case m.Delay != nil:
		w.When = &ddqv1.OperationReschedule_Delay{Delay: durationpb.New(*m.Delay)}
	default:
		w.When = &ddqv1.OperationReschedule_Shift{Shift: durationpb.New(m.By)}
	}
	if m.Spread != 0 {
		w.Spread = durationpb.New(m.Spread)
	}
	return w
}

// Operation returns how far an operation is.
func (c Operations) Operation(ctx context.Context, topic, id string) (Operation, error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.rpc.GetOperation, &ddqv1.GetOperationRequest{Topic: topic, Id: id})
	return fromWire(reply.GetOperation()), err
}

// ListOperations goes through the operations of a topic, the newest first. The sequence ends with the
// first error.
func (c Operations) ListOperations(ctx context.Context, topic string) iter.Seq2[Operation, error] {
	return call.Pages(func(token string) ([]Operation, string, error) {
		reply, err := call.Answer(ctx, c.do, call.Idempotent, c.rpc.ListOperations, &ddqv1.ListOperationsRequest{Topic: topic, PageSize: call.PageSize, PageToken: token})
		return call.List(reply.GetOperations(), fromWire), reply.GetNextPageToken(), err
	})
}

// StopOperation asks an operation to stop, which takes a second or two. What it has changed stays
// changed; one that has ended stays as it is.
func (c Operations) StopOperation(ctx context.Context, topic, id string) (Operation, error) {
	reply, err := call.Answer(ctx, c.do, call.Idempotent, c.rpc.StopOperation, &ddqv1.StopOperationRequest{Topic: topic, Id: id})
	return fromWire(reply.GetOperation()), err
}
