package server

import (
	"math"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
)

func mask(paths ...string) *fieldmaskpb.FieldMask { return &fieldmaskpb.FieldMask{Paths: paths} }

// updated makes a call of an UpdateTaskRequest for task a, which waits in topic t.
func updated(request *ddqv1.UpdateTaskRequest) func(r *rig) error {
	return func(r *rig) error {
		r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: "a", When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}})
		request := proto.CloneOf(request)
		request.Topic, request.Id = "t", "a"
		_, err := r.queue.UpdateTask(r.Context(), request)
		return err
	}
}

// editRefusals are the rows of the error table about edits.
var editRefusals = []refusal{
	{"update without a mask", updated(&ddqv1.UpdateTaskRequest{Payload: []byte("x")}), codes.InvalidArgument, "BAD_MASK", "update_mask", "", 0},
	{"update with an empty mask", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask()}), codes.InvalidArgument, "BAD_MASK", "update_mask", "", 0},
	{"update of an unknown field", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("payload", "color")}), codes.InvalidArgument, "BAD_MASK", "update_mask", "", 0},
	{"update of the trace context", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("traceparent")}), codes.InvalidArgument, "BAD_MASK", "update_mask", "", 0},
	{"update of the id", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("id")}), codes.InvalidArgument, "BAD_MASK", "update_mask", "", 0},
	{"update of bytes", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("\xff")}), codes.InvalidArgument, "BAD_MASK", "update_mask", "", 0},
	{"update with a delay that is not there", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("delay")}), codes.InvalidArgument, "BAD_MASK", "update_mask", "", 0},
	{"update with both times", updated(&ddqv1.UpdateTaskRequest{
		UpdateMask: mask("delay", "execute_time"), When: &ddqv1.UpdateTaskRequest_Delay{Delay: durationpb.New(1)},
	}), codes.InvalidArgument, "BAD_MASK", "update_mask", "", 0},
	{"update with a negative delay", updated(&ddqv1.UpdateTaskRequest{
		UpdateMask: mask("delay"), When: &ddqv1.UpdateTaskRequest_Delay{Delay: durationpb.New(-1)},
	}), codes.InvalidArgument, "BAD_DELAY", "delay", "", 0},
	{"update to the year 9999", updated(&ddqv1.UpdateTaskRequest{
		UpdateMask: mask("execute_time"),
		When:       &ddqv1.UpdateTaskRequest_ExecuteTime{ExecuteTime: &timestamppb.Timestamp{Seconds: 253_402_300_799}},
	}), codes.OutOfRange, "DELAY_TOO_LONG", "execute_time", "", 0},
	{"update that expires before it is due", updated(&ddqv1.UpdateTaskRequest{
		UpdateMask: mask("expire_time"), Expiry: &ddqv1.UpdateTaskRequest_ExpireTime{ExpireTime: &timestamppb.Timestamp{Seconds: 1}},
	}), codes.InvalidArgument, "BAD_TIME", "expire_time", "", 0},
	{"update with an expiry of nothing", updated(&ddqv1.UpdateTaskRequest{
		UpdateMask: mask("expire_after"), Expiry: &ddqv1.UpdateTaskRequest_ExpireAfter{ExpireAfter: durationpb.New(0)},
	}), codes.InvalidArgument, "BAD_DELAY", "expire_after", "", 0},
	{"update with a large payload", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("payload"), Payload: make([]byte, 1<<20+1)}), codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "payload", "", 0},
	{"update with bad attributes", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("attributes"), Attributes: []*ddqv1.Attribute{{}}}), codes.InvalidArgument, "BAD_ATTRIBUTES", "attributes", "", 0},
	{"update with negative retries", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("max_retries"), MaxRetries: proto.Int32(-1)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "max_retries", "", 0},
	{"update with a short visibility timeout", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("visibility_timeout_ms"), VisibilityTimeoutMs: 1}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "visibility_timeout_ms", "", 0},
	{"update with a long handler timeout", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("handler_timeout_ms"), HandlerTimeoutMs: 31_622_400_001}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "handler_timeout_ms", "", 0},
	{"update with an unknown backoff", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("backoff"), Backoff: &ddqv1.Backoff{Kind: 99}}), codes.InvalidArgument, "BAD_ENUM", "backoff.kind", "", 0},
	{"update with an unknown priority", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("priority"), Priority: 10}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "priority", "", 0},
	{"update with a key of bytes", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("fairness_key"), FairnessKey: "\xff"}), codes.InvalidArgument, "BAD_KEY", "fairness_key", "", 0},
	{"update of a negative version", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("payload"), IfVersion: math.MinInt64}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "if_version", "", 0},
	{"update of another version", updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("payload"), IfVersion: 2}), codes.Aborted, "VERSION_MISMATCH", "if_version", "", 0},
	{"reschedule of another version", func(r *rig) error {
		must(r, updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("payload")})(r))
		_, err := r.queue.RescheduleTask(r.Context(), &ddqv1.RescheduleTaskRequest{Id: "a", IfVersion: 1, When: &ddqv1.RescheduleTaskRequest_Delay{Delay: &durationpb.Duration{}}})
		return err
	}, codes.Aborted, "VERSION_MISMATCH", "if_version", "", 0},
	{"promote without an id", func(r *rig) error {
		_, err := r.queue.PromoteTask(r.Context(), &ddqv1.PromoteTaskRequest{Topic: "t"})
		return err
	}, codes.InvalidArgument, "BAD_ID", "id", "", 0},
	{"promote of an unknown task", func(r *rig) error {
		_, err := r.queue.PromoteTask(r.Context(), &ddqv1.PromoteTaskRequest{Id: "a"})
		return err
	}, codes.NotFound, "NO_TASK", "id", "", 0},
	{"promote a running task", func(r *rig) error {
		r.hold("t", "a")
		_, err := r.queue.PromoteTask(r.Context(), &ddqv1.PromoteTaskRequest{Id: "a"})
		return err
	}, codes.FailedPrecondition, "TASK_RUNNING", "id", "running", 0},
	{"update a finished task", func(r *rig) error {
		must(r, created("t", &ddqv1.TopicPolicy{DoneRetentionMs: proto.Int64(60_000)})(r))
		r.mustAck("t", r.hold("t", "a"))
		_, err := r.queue.UpdateTask(r.Context(), &ddqv1.UpdateTaskRequest{Topic: "t", Id: "a", UpdateMask: mask("payload")})
		return err
	}, codes.FailedPrecondition, "TASK_FINISHED", "id", "done", 0},
}

func TestEditRefusals(t *testing.T) { testRefusals(t, editRefusals) }

// TestStaleVersionNamesTheCurrentOne, so that the caller knows what it missed.
func TestStaleVersionNamesTheCurrentOne(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, updated(&ddqv1.UpdateTaskRequest{UpdateMask: mask("payload")})(r))
		_, err := r.queue.PromoteTask(r.Context(), &ddqv1.PromoteTaskRequest{Id: "a", IfVersion: 1})
		if got := statustest.Look(r.T, err); got.Code != codes.Aborted || got.Metadata["version"] != "2" {
			r.Errorf("got %+v", got)
		}
	})
}

// TestUpdateChangesWhatTheMaskNames and nothing else.
func TestUpdateChangesWhatTheMaskNames(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.enqueue(&ddqv1.EnqueueRequest{
			Topic: "t", Id: "a", Payload: []byte("first"), Attributes: []*ddqv1.Attribute{{Key: "k", Value: "v"}}, MaxRetries: proto.Int32(7),
			Expiry: &ddqv1.EnqueueRequest_ExpireAfter{ExpireAfter: durationpb.New(time.Hour)}, When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Minute)},
		})
		before, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "a"})
		must(r, err)
		full := &ddqv1.UpdateTaskRequest{
			Id: "a", Payload: []byte("other"), MaxRetries: proto.Int32(1), VisibilityTimeoutMs: 5000, HandlerTimeoutMs: 60_000,
			Backoff: &ddqv1.Backoff{Kind: 1, BaseMs: 5},
			Expiry:  &ddqv1.UpdateTaskRequest_ExpireTime{ExpireTime: &timestamppb.Timestamp{Seconds: 4e9}},
		}
		want := before.Task
		for _, step := range []struct {
			paths []string
			make  func()
		}{
			{[]string{"payload"}, func() { want.Payload = full.Payload }},
			{[]string{"attributes"}, func() { want.Attributes = nil }},
			{[]string{"max_retries", "visibility_timeout_ms"}, func() { want.MaxRetries, want.VisibilityTimeoutMs = 1, 5000 }},
			{[]string{"handler_timeout_ms"}, func() { want.HandlerTimeoutMs = 60_000 }},
			{[]string{"backoff", "expire_time"}, func() { want.Backoff, want.ExpireTime = full.Backoff, &timestamppb.Timestamp{Seconds: 4e9} }},
		} {
			request := proto.CloneOf(full)
			request.UpdateMask, request.IfVersion = mask(step.paths...), want.Version
			done, err := r.queue.UpdateTask(r.Context(), request)
			must(r, err)
			step.make()
			want.Version++
			got, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Topic: "t", Id: "a"})
			must(r, err)
			if !proto.Equal(got.Task, want) || done.Version != want.Version || !proto.Equal(done.ExecuteTime, want.ExecuteTime) {
				r.Errorf("%v:\n got %v\nwant %v", step.paths, got.Task, want)
			}
		}
		time.Sleep(time.Minute)
		if d := r.retrieve("t"); string(d.Task.Payload) != "other" || d.Task.Version != want.Version {
			r.Errorf("delivered %v", d.Task)
		}
	})
}

// TestUnsetValuesGoBackToTheTopic: what the mask names and the request leaves out.
func TestUnsetValuesGoBackToTheTopic(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, updated(&ddqv1.UpdateTaskRequest{
			UpdateMask: mask("max_retries", "visibility_timeout_ms", "expire_after", "backoff"), MaxRetries: proto.Int32(9), VisibilityTimeoutMs: 5000,
			Expiry: &ddqv1.UpdateTaskRequest_ExpireAfter{ExpireAfter: durationpb.New(time.Hour)}, Backoff: &ddqv1.Backoff{Kind: 1, BaseMs: 5},
		})(r))
		_, err := r.queue.UpdateTask(r.Context(), &ddqv1.UpdateTaskRequest{Id: "a", UpdateMask: mask("max_retries", "visibility_timeout_ms", "expire_time", "backoff")})
		must(r, err)
		got, err := r.queue.GetTask(r.Context(), &ddqv1.GetTaskRequest{Id: "a"})
		must(r, err)
		if task := got.Task; task.MaxRetries != 3 || task.VisibilityTimeoutMs != 0 || task.ExpireTime != nil || task.Backoff != nil || task.Version != 3 {
			r.Errorf("got %v", task)
		}
	})
}

// TestSameRequestAfterAnEdit is answered as a repeat, with the task as it is now;
// another one is refused as long as the task lives.
func TestSameRequestAfterAnEdit(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		request := &ddqv1.EnqueueRequest{Topic: "t", Id: "a", Payload: []byte("first"), When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}}
		r.enqueue(request)
		edited, err := r.queue.UpdateTask(r.Context(), &ddqv1.UpdateTaskRequest{
			Id: "a", Payload: []byte("other"), UpdateMask: mask("payload", "delay"), When: &ddqv1.UpdateTaskRequest_Delay{Delay: durationpb.New(time.Minute)},
		})
		must(r, err)
		if again := r.enqueue(request); !again.Deduplicated || !proto.Equal(again.ExecuteTime, edited.ExecuteTime) {
			r.Errorf("the same request again: %v", again)
		}
		like := proto.CloneOf(request)
		like.Payload = []byte("other") // what the edit made of it is no request
		if _, err := r.queue.Enqueue(r.Context(), like); statustest.Look(r.T, err).Reason != "ID_CONFLICT" {
			r.Errorf("another request: %v", err)
		}
		time.Sleep(time.Minute + time.Second)
		if d := r.retrieve("t"); string(d.Task.Payload) != "other" {
			r.Errorf("delivered %v", d.Task)
		}
	})
}
