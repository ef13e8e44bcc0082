package server

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/operations"
)

// operation starts one, and waits for its end.
func (r *rig) operation(request *ddqv1.StartOperationRequest) *ddqv1.Operation {
	r.Helper()
	request.Topic = "t"
	started, err := r.operations.StartOperation(r.Context(), request)
	must(r, err)
	o := started.Operation
	if o.Id == "" || o.Progress.Done || o.CreatedUnixMs == 0 {
		r.Errorf("it began as %v", o)
	}
	for range 600 {
		time.Sleep(time.Second)
		got, err := r.operations.GetOperation(r.Context(), &ddqv1.GetOperationRequest{Topic: "t", Id: o.Id})
		must(r, err)
		if o = got.Operation; o.Progress.Done {
			return o
		}
	}
	r.Fatalf("it has not ended: %v", o)
	return nil
}

func deleteOf(f *ddqv1.TaskFilter) *ddqv1.StartOperationRequest_DeleteTasks {
	return &ddqv1.StartOperationRequest_DeleteTasks{DeleteTasks: &ddqv1.OperationDelete{Filter: f}}
}

func TestOperationsChangeManyTasks(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		start := r.stock()
		acme := &ddqv1.TaskFilter{Attributes: attribute("tenant", "acme")}
		count := r.operation(&ddqv1.StartOperationRequest{Action: &ddqv1.StartOperationRequest_DeleteTasks{
			DeleteTasks: &ddqv1.OperationDelete{Filter: acme, DryRun: true},
		}})
		if count.Progress.Matched != 30 || count.Progress.Changed != 0 {
			r.Errorf("dry run: %v", count)
		}
		gone := r.operation(&ddqv1.StartOperationRequest{Action: deleteOf(acme), RatePerS: 10})
		if took := gone.EndedUnixMs - gone.BeganUnixMs; gone.Progress.Changed != 30 || took < 2900 || took > 3100 {
			r.Errorf("30 deletes at 10 a second: %v", gone)
		}
		if got := r.found(&ddqv1.TaskFilter{}); !slices.Equal(got, numbers(1, 60, 2)) {
			r.Errorf("left are %v", got)
		}
		moved := r.operation(&ddqv1.StartOperationRequest{Action: &ddqv1.StartOperationRequest_RescheduleTasks{RescheduleTasks: &ddqv1.OperationReschedule{
			Filter: &ddqv1.TaskFilter{IdPrefix: "t-59"}, When: &ddqv1.OperationReschedule_Shift{Shift: durationpb.New(time.Hour)},
		}}})
		got, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "t-59"})
		must(r, err)
		if due := got.Task.ExecuteTime.AsTime().Sub(start); moved.Progress.Changed != 1 || due < 2*time.Hour {
			r.Errorf("moved to %v: %v", due, moved)
		}
		list, err := r.operations.ListOperations(r.Context(), &ddqv1.ListOperationsRequest{Topic: "t", PageSize: 2})
		must(r, err)
		if len(list.Operations) != 2 || list.Operations[0].Id != moved.Id || list.Operations[0].Request.GetRescheduleTasks() == nil || list.NextPageToken == "" {
			r.Errorf("the newest are %v", list)
		}
		list, err = r.operations.ListOperations(r.Context(), &ddqv1.ListOperationsRequest{Topic: "t", PageSize: 2, PageToken: list.NextPageToken})
		must(r, err)
		if len(list.Operations) != 1 || list.Operations[0].Id != count.Id || list.NextPageToken != "" {
			r.Errorf("the oldest is %v", list)
		}
	})
}

func TestOperationsOnDeadLetters(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		for _, id := range numbers(0, 9, 1) {
			d := r.hold("t", id)
			_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "t", Nack: &ddqv1.Nack{
				TaskId: id, HoldToken: d.HoldToken, Error: "timeout", Permanent: true,
			}})
			must(r, err)
		}
		all := &ddqv1.OperationDeadLetters{}
		dry := &ddqv1.OperationDeadLetters{DryRun: true}
		for _, request := range []*ddqv1.StartOperationRequest{
			{Action: &ddqv1.StartOperationRequest_RequeueDeadLetters{RequeueDeadLetters: dry}}, {Action: &ddqv1.StartOperationRequest_DeleteDeadLetters{DeleteDeadLetters: dry}},
		} {
			if p := r.operation(request).Progress; p.Matched != 9 || p.Changed != 0 || p.Examined != 9 || p.Capped {
				r.Errorf("a dry run counts %v", p)
			}
		}
		back := r.operation(&ddqv1.StartOperationRequest{Action: &ddqv1.StartOperationRequest_RequeueDeadLetters{RequeueDeadLetters: all}, RatePerS: 3})
		if took := back.EndedUnixMs - back.BeganUnixMs; back.State != ddqv1.OperationState_OPERATION_STATE_DONE || back.Progress.Changed != 9 || took < 2900 {
			r.Errorf("9 requeues at 3 a second: %v", back)
		}
		none := r.operation(&ddqv1.StartOperationRequest{Action: &ddqv1.StartOperationRequest_DeleteDeadLetters{DeleteDeadLetters: all}})
		if none.Progress.Matched != 0 {
			r.Errorf("none are left: %v", none)
		}
	})
}

func TestAnOperationIsStopped(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.stock()
		started, err := r.operations.StartOperation(r.Context(), &ddqv1.StartOperationRequest{Topic: "t", Action: deleteOf(&ddqv1.TaskFilter{IdPrefix: "t-"}), RatePerS: 1})
		must(r, err)
		time.Sleep(10 * time.Second)
		at := &ddqv1.StopOperationRequest{Topic: "t", Id: started.Operation.Id}
		asked, err := r.operations.StopOperation(r.Context(), at)
		must(r, err)
		time.Sleep(3 * time.Second)
		ended, err := r.operations.StopOperation(r.Context(), at)
		must(r, err)
		if o := ended.Operation; !asked.Operation.Stopping || o.State != ddqv1.OperationState_OPERATION_STATE_STOPPED || o.Progress.Changed < 9 || o.Progress.Changed > 14 {
			r.Errorf("asked it is %v, and then %v", asked, o)
		}
	})
}

func startedBy(request *ddqv1.StartOperationRequest) func(r *rig) error {
	return func(r *rig) error {
		must(r, simple(r))
		if request.Topic == "" {
			request.Topic = "t"
		}
		_, err := r.operations.StartOperation(r.Context(), request)
		return err
	}
}

func moveOf(m *ddqv1.OperationReschedule) *ddqv1.StartOperationRequest {
	m.Filter = &ddqv1.TaskFilter{IdPrefix: "a"}
	return &ddqv1.StartOperationRequest{Action: &ddqv1.StartOperationRequest_RescheduleTasks{RescheduleTasks: m}}
}

// operationRefusals are told at once, and make no operation.
var operationRefusals = []refusal{
	{"operation of nothing", startedBy(&ddqv1.StartOperationRequest{}), codes.InvalidArgument, "BAD_ACTION", "action", "", 0},
	{"operation on everything", startedBy(&ddqv1.StartOperationRequest{Action: deleteOf(nil)}), codes.InvalidArgument, "BAD_FILTER", "filter", "", 0},
	{"operation on what runs", startedBy(&ddqv1.StartOperationRequest{Action: deleteOf(&ddqv1.TaskFilter{States: []ddqv1.TaskState{ddqv1.TaskState_TASK_STATE_RUNNING}})}), codes.InvalidArgument, "BAD_ENUM", "filter.states", "", 0},
	{"operation without a time", startedBy(moveOf(&ddqv1.OperationReschedule{})), codes.InvalidArgument, "BAD_TIME", "when", "", 0},
	{"operation of a negative spread", startedBy(moveOf(&ddqv1.OperationReschedule{
		When: &ddqv1.OperationReschedule_Delay{Delay: durationpb.New(time.Hour)}, Spread: durationpb.New(-time.Hour),
	})), codes.InvalidArgument, "BAD_DELAY", "spread", "", 0},
	{"operation at a negative rate", startedBy(&ddqv1.StartOperationRequest{Action: deleteOf(&ddqv1.TaskFilter{IdPrefix: "a"}), RatePerS: -1}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "rate_per_s", "", 0},
	{"operation at a huge rate", startedBy(&ddqv1.StartOperationRequest{Action: deleteOf(&ddqv1.TaskFilter{IdPrefix: "a"}), RatePerS: 1 << 40}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "rate_per_s", "", 0},
	{"operation in no topic", startedBy(&ddqv1.StartOperationRequest{Topic: "none", Action: deleteOf(&ddqv1.TaskFilter{IdPrefix: "a"})}), codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"operation on dead letters of no topic", startedBy(&ddqv1.StartOperationRequest{Topic: "none", Action: &ddqv1.StartOperationRequest_DeleteDeadLetters{DeleteDeadLetters: &ddqv1.OperationDeadLetters{}}}), codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"get no operation", func(r *rig) error {
		_, err := r.operations.GetOperation(r.Context(), &ddqv1.GetOperationRequest{Topic: "t", Id: "x"})
		return err
	}, codes.NotFound, "NO_OPERATION", "", "", 0},
	{"stop no operation", func(r *rig) error {
		_, err := r.operations.StopOperation(r.Context(), &ddqv1.StopOperationRequest{Topic: "t", Id: "x"})
		return err
	}, codes.NotFound, "NO_OPERATION", "", "", 0},
	{"list a negative page of operations", func(r *rig) error {
		_, err := r.operations.ListOperations(r.Context(), &ddqv1.ListOperationsRequest{Topic: "t", PageSize: -1})
		return err
	}, codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "page_size", "", 0},
}

func TestOperationRefusals(t *testing.T) { testRefusals(t, operationRefusals) }

// An operation about everything is for those who may administer everything, whatever is asked about it.
func TestOperationsAboutEverything(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		admin, _ := r.token(0, "admin:*")
		start := &ddqv1.StartOperationRequest{Action: &ddqv1.StartOperationRequest_Reencrypt{Reencrypt: new(ddqv1.OperationReencrypt)}}
		for what, call := range map[string]func(ctx context.Context) error{
			"start": func(ctx context.Context) error { _, err := r.operations.StartOperation(ctx, start); return err },
			"list": func(ctx context.Context) error {
				_, err := r.operations.ListOperations(ctx, new(ddqv1.ListOperationsRequest))
				return err
			},
			"get": func(ctx context.Context) error {
				_, err := r.operations.GetOperation(ctx, &ddqv1.GetOperationRequest{Id: "x"})
				return err
			},
			"stop": func(ctx context.Context) error {
				_, err := r.operations.StopOperation(ctx, &ddqv1.StopOperationRequest{Id: "x"})
				return err
			},
		} {
			if err := call(r.as(admin)); reasonOf(err) != "NOT_ALLOWED" {
				t.Errorf("%s by who has all topics: %v", what, err)
			}
			want := map[string]string{"start": "NOT_ENCRYPTED", "list": ""}
			if reason, other := want[what], reasonOf(call(r.as(r.root))); other != reason && (reason != "" || other != "NO_OPERATION") {
				t.Errorf("%s by who has everything: %q", what, other)
			}
		}
		start.Topic = "mail"
		if _, err := r.operations.StartOperation(r.as(r.root), start); reasonOf(err) != "BAD_ACTION" {
			t.Errorf("of a topic: %v", err)
		}
	})
}

// One operation about everything runs at a time. One that did not come to its end is gone on with.
func TestReencryptionGoesOn(t *testing.T) {
	var mu sync.Mutex // guards marks
	var marks []string
	config := Config{Reencrypt: func(ctx context.Context, mark string, _ int, report func(operations.Progress) error) error {
		mu.Lock()
		marks = append(marks, mark)
		mu.Unlock()
		if err := report(operations.Progress{Matched: 1, Mark: "here"}); err != nil || mark != "" {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	bubble(t, config, func(r *rig) {
		start := func() (*ddqv1.Operation, error) {
			started, err := r.operations.StartOperation(r.Context(), &ddqv1.StartOperationRequest{Action: &ddqv1.StartOperationRequest_Reencrypt{Reencrypt: new(ddqv1.OperationReencrypt)}})
			time.Sleep(2 * time.Second)
			return started.GetOperation(), err
		}
		first, err := start()
		must(r, err)
		if _, err := start(); reasonOf(err) != "OPERATION_RUNS" {
			t.Errorf("beside another one: %v", err)
		}
		_, err = r.operations.StopOperation(r.Context(), &ddqv1.StopOperationRequest{Id: first.Id})
		must(r, err)
		time.Sleep(3 * time.Second)
		second, err := start()
		must(r, err)
		got, err := r.operations.GetOperation(r.Context(), &ddqv1.GetOperationRequest{Id: second.Id})
		must(r, err)
		if got.Operation.State != ddqv1.OperationState_OPERATION_STATE_DONE || got.Operation.Request.GetReencrypt() == nil {
			t.Errorf("it ended as %v", got)
		}
		_, err = start()
		must(r, err)
		mu.Lock()
		defer mu.Unlock()
		if want := []string{"", "here", ""}; !slices.Equal(marks, want) {
			t.Errorf("they began at %q, want %q", marks, want)
		}
	})
}
