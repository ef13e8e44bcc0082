package server

import (
	"cmp"
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/operations"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// operationServer serves OperationService.
type operationServer struct {
	ddqv1.UnsafeOperationServiceServer
	operations *operations.Operations
	bulk       *service.BulkEditor
	dead       *service.DeadLetters
	topics     *service.Topics

	// See Config; nil: nothing is encrypted.
	reencrypt func(ctx context.Context, mark string, batch int, report func(operations.Progress) error) error
}

var _ ddqv1.OperationServiceServer = (*operationServer)(nil)

func (s *operationServer) StartOperation(ctx context.Context, r *ddqv1.StartOperationRequest) (*ddqv1.StartOperationResponse, error) {
	if e := allowOperation(ctx, ddqv1.OperationService_StartOperation_FullMethodName, r.Topic); e != nil {
		return nil, e
	}
	act, err := s.actOf(ctx, r)
	if err != nil {
		return nil, err
	}
	asked, err := proto.Marshal(r)
	if err != nil {
		return nil, err
	}
	spec := operations.Spec{Topic: r.Topic, Request: asked, Rate: int(min(r.RatePerS, operations.MaxRate+1)), Act: act}
	if p := auth.From(ctx); p != nil {
		spec.By = p.Name
	}
	o, err := s.operations.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &ddqv1.StartOperationResponse{Operation: operationWire(o)}, nil
}

// actOf returns what an operation is to do, which is found to be possible.
func (s *operationServer) actOf(ctx context.Context, r *ddqv1.StartOperationRequest) (operations.Act, error) {
	switch a := r.Action.(type) {
	case *ddqv1.StartOperationRequest_DeleteTasks:
		b, e := bulkOf(r, a.DeleteTasks)
		if e != nil {
			return nil, e
		}
		return func(ctx context.Context, report func(operations.Progress) error) error {
			return s.bulk.Delete(ctx, b, reporting(report))
		}, s.bulk.Check(ctx, &b, nil)
	case *ddqv1.StartOperationRequest_RescheduleTasks:
		b, e := bulkOf(r, a.RescheduleTasks)
		if e != nil {
			return nil, e
		}
		to, e := shiftOf(shiftAsked(a.RescheduleTasks))
		if e != nil {
			return nil, e
		}
		return func(ctx context.Context, report func(operations.Progress) error) error {
			return s.bulk.Reschedule(ctx, b, to, reporting(report))
		}, s.bulk.Check(ctx, &b, &to)
	case *ddqv1.StartOperationRequest_Reencrypt:
		return s.reencryptAct(ctx, r)
	case *ddqv1.StartOperationRequest_RequeueDeadLetters:
		return s.deadAct(ctx, r, a.RequeueDeadLetters, true, func(ctx context.Context, f service.DeadFilter, at service.Pace) error {
			_, err := s.dead.Requeue(ctx, r.Topic, nil, f, at)
			return err
		})
	case *ddqv1.StartOperationRequest_DeleteDeadLetters:
		return s.deadAct(ctx, r, a.DeleteDeadLetters, false, func(ctx context.Context, f service.DeadFilter, at service.Pace) error {
			_, _, err := s.dead.Delete(ctx, r.Topic, nil, f, at)
			return err
		})
	}
	return nil, wire.Invalid("BAD_ACTION", "action", "is missing: say what is to be done")
}

// allowOperation says why a caller may not have to do with an operation: one about everything is for those who may
// administer that. The others are for the rule of the call.
func allowOperation(ctx context.Context, method, topic string) error {
	if topic != "" {
		return nil
	}
	if e := guard.AllowFleet(ctx, method); e != nil {
		return e
	}
	return nil
}

// reencryptAct goes on with what the last one has left.
func (s *operationServer) reencryptAct(ctx context.Context, r *ddqv1.StartOperationRequest) (operations.Act, error) {
	switch {
	case r.Topic != "":
		return nil, wire.Invalid("BAD_ACTION", "reencrypt", "is about everything there is, and not about a topic")
	case s.reencrypt == nil:
		return nil, &problem.Error{Kind: problem.Precondition, Reason: "NOT_ENCRYPTED", Message: "the node encrypts nothing: it has no --encryption-key, or only reads with it"}
	}
	mark, err := s.operations.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, report func(operations.Progress) error) error {
		if err := report(operations.Progress{Mark: mark}); err != nil { // so that it is not lost
			return err
		}
		return s.reencrypt(ctx, mark, cmp.Or(batchAt(r.RatePerS), store.BatchItems), report)
	}, nil
}

// deadAct is an operation on dead letters, which requeues them or does something else.
func (s *operationServer) deadAct(ctx context.Context, r *ddqv1.StartOperationRequest, which *ddqv1.OperationDeadLetters, requeue bool, do func(context.Context, service.DeadFilter, service.Pace) error) (operations.Act, error) {
	filter, e := filterOf(which.GetFilter())
	if e != nil {
		return nil, e
	}
	if _, err := s.topics.Describe(ctx, r.Topic); err != nil {
		return nil, err
	}
	if which.GetDryRun() {
		return func(ctx context.Context, report func(operations.Progress) error) error {
			p, err := s.dead.Count(ctx, r.Topic, filter, service.DryRun{Most: service.DryRunOperation, Requeue: requeue, Report: reporting(report)})
			if err != nil {
				return err
			}
			return reporting(report)(p)
		}, nil
	}
	return func(ctx context.Context, report func(operations.Progress) error) error {
		return do(ctx, filter, service.Pace{Batch: batchAt(r.RatePerS), Report: reporting(report)})
	}, nil
}

// bulkAsked is what deletes and moves of tasks have in common.
type bulkAsked interface {
	GetFilter() *ddqv1.TaskFilter
	GetDryRun() bool
	GetMaxTasks() int64
}

func bulkOf(r *ddqv1.StartOperationRequest, a bulkAsked) (service.Bulk, *problem.Error) {
	filter, e := taskFilterOf(a.GetFilter())
	return service.Bulk{Topic: r.Topic, Filter: filter, DryRun: a.GetDryRun(), Max: a.GetMaxTasks(), Batch: batchAt(r.RatePerS)}, e
}

// batchAt is how many tasks are changed together at a rate: those of a tenth of a second.
func batchAt(rate int64) int {
	if rate <= 0 {
		return 0
	}
	return int(max(1, min(rate/10, store.BatchItems)))
}

// shiftAsked is where tasks are moved to, as RescheduleTasks says it.
func shiftAsked(a *ddqv1.OperationReschedule) *ddqv1.RescheduleTasksRequest {
	r := &ddqv1.RescheduleTasksRequest{Spread: a.GetSpread()}
	switch when := a.GetWhen().(type) {
	case *ddqv1.OperationReschedule_Delay:
		r.When = &ddqv1.RescheduleTasksRequest_Delay{Delay: when.Delay}
	case *ddqv1.OperationReschedule_ExecuteTime:
		r.When = &ddqv1.RescheduleTasksRequest_ExecuteTime{ExecuteTime: when.ExecuteTime}
	case *ddqv1.OperationReschedule_Shift:
		r.When = &ddqv1.RescheduleTasksRequest_Shift{Shift: when.Shift}
	}
	return r
}

// reporting hands on how far a change is.
func reporting(report func(operations.Progress) error) func(service.Progress) error {
	return func(p service.Progress) error {
		return report(operations.Progress{Matched: p.Matched, Changed: p.Changed, Skipped: p.Skipped, Capped: p.Capped, Examined: p.Examined})
	}
}

func (s *operationServer) GetOperation(ctx context.Context, r *ddqv1.GetOperationRequest) (*ddqv1.GetOperationResponse, error) {
	if e := allowOperation(ctx, ddqv1.OperationService_GetOperation_FullMethodName, r.Topic); e != nil {
		return nil, e
	}
	o, err := s.operations.Get(ctx, r.Topic, r.Id)
	if err != nil {
		return nil, err
	}
	return &ddqv1.GetOperationResponse{Operation: operationWire(o)}, nil
}

func (s *operationServer) ListOperations(ctx context.Context, r *ddqv1.ListOperationsRequest) (*ddqv1.ListOperationsResponse, error) {
	if e := allowOperation(ctx, ddqv1.OperationService_ListOperations_FullMethodName, r.Topic); e != nil {
		return nil, e
	}
	size, e := pageSize(r.PageSize)
	if e != nil {
		return nil, e
	}
	page, more, err := s.operations.List(ctx, r.Topic, size, r.PageToken)
	if err != nil {
		return nil, err
	}
	reply := &ddqv1.ListOperationsResponse{Operations: make([]*ddqv1.Operation, len(page))}
	for i, o := range page {
		reply.Operations[i] = operationWire(o)
	}
	if more {
		reply.NextPageToken = page[len(page)-1].ID
	}
	return reply, nil
}

func (s *operationServer) StopOperation(ctx context.Context, r *ddqv1.StopOperationRequest) (*ddqv1.StopOperationResponse, error) {
	if e := allowOperation(ctx, ddqv1.OperationService_StopOperation_FullMethodName, r.Topic); e != nil {
		return nil, e
	}
	o, err := s.operations.Ask(ctx, r.Topic, r.Id)
	if err != nil {
		return nil, err
	}
	return &ddqv1.StopOperationResponse{Operation: operationWire(o)}, nil
}

// operationStateToWire has the states in order.
var operationStateToWire = [...]ddqv1.OperationState{
	operations.Waiting:   ddqv1.OperationState_OPERATION_STATE_WAITING,
	operations.Running:   ddqv1.OperationState_OPERATION_STATE_RUNNING,
	operations.Done:      ddqv1.OperationState_OPERATION_STATE_DONE,
	operations.Failed:    ddqv1.OperationState_OPERATION_STATE_FAILED,
	operations.Stopped:   ddqv1.OperationState_OPERATION_STATE_STOPPED,
	operations.BrokenOff: ddqv1.OperationState_OPERATION_STATE_BROKEN_OFF,
}

func operationWire(o *operations.Operation) *ddqv1.Operation {
	w := &ddqv1.Operation{
		Id: o.ID, Request: &ddqv1.StartOperationRequest{Topic: o.Topic}, State: wire.Enum(operationStateToWire[:], o.State),
		Progress: &ddqv1.BulkProgress{Matched: o.Matched, Changed: o.Changed, Skipped: o.Skipped, Capped: o.Capped, Examined: o.Examined, Done: o.State.Ended()},
		Node:     o.Node, StartedBy: wire.Text(o.By), CreatedUnixMs: int64(o.Created), BeganUnixMs: int64(o.Began), EndedUnixMs: int64(o.Ended),
		Stopping: o.Stopping,
	}
	if asked := new(ddqv1.StartOperationRequest); proto.Unmarshal(o.Request, asked) == nil {
		asked.Topic, w.Request = o.Topic, asked
	}
	if f := o.Failure; f != nil {
		w.Error = &ddqv1.Error{Reason: f.Reason, Message: wire.Text(f.Message)}
	}
	return w
}
