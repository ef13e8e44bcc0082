package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/status/statustest"
	"github.com/ddq-io/ddq/store"
)

// keepsLog creates topic t, which keeps what happens for an hour.
func (r *rig) keepsLog() {
	r.Helper()
	must(r, created("t", &ddqv1.TopicPolicy{WatchRetentionMs: proto.Int64(time.Hour.Milliseconds())})(r))
}

func (r *rig) watch(req *ddqv1.WatchTasksRequest) grpc.ServerStreamingClient[ddqv1.WatchTasksResponse] {
	r.Helper()
	stream, err := r.queue.WatchTasks(r.Context(), req)
	must(r, err)
	return stream
}

// later enqueues a task for in an hour.
func (r *rig) later(id string) {
	r.enqueue(&ddqv1.EnqueueRequest{Topic: "t", Id: id, When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Hour)}})
}

// happened reads frames until one has no changes.
func (r *rig) happened(stream grpc.ServerStreamingClient[ddqv1.WatchTasksResponse]) (changes []*ddqv1.TaskChange, cursor []byte) {
	r.Helper()
	for {
		frame, err := stream.Recv()
		must(r, err)
		if cursor = frame.Cursor; len(frame.Changes) == 0 {
			return changes, cursor
		}
		changes = append(changes, frame.Changes...)
	}
}

// A task is followed without a query for each look.
func TestWatchTellsTheLifeOfATask(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.keepsLog()
		stream := r.watch(&ddqv1.WatchTasksRequest{Topic: "t"})
		if first, _ := r.happened(stream); len(first) > 0 {
			r.Errorf("the first frame has %v", first)
		}
		r.mustAck("t", r.hold("t", "a"))
		r.later("b")
		changes, cursor := r.happened(stream)
		var got []string
		for _, c := range changes {
			got = append(got, fmt.Sprint(c.Id, " ", c.Kind, " ", c.State, " ", c.Attempt))
		}
		slices.Sort(got)
		want := []string{
			"a CHANGE_KIND_DONE TASK_STATE_DONE 1", "a CHANGE_KIND_ENQUEUED TASK_STATE_READY 0", "a CHANGE_KIND_HELD TASK_STATE_RUNNING 1",
			"b CHANGE_KIND_ENQUEUED TASK_STATE_SCHEDULED 0",
		}
		if !slices.Equal(got, want) {
			r.Errorf("told %q, want %q", got, want)
		}
		_, err := r.queue.DeleteTask(r.Context(), &ddqv1.DeleteTaskRequest{Topic: "t", Id: "b"})
		must(r, err)
		again := r.watch(&ddqv1.WatchTasksRequest{Topic: "t", Cursor: cursor, Ids: []string{"b"}, Kinds: []ddqv1.ChangeKind{ddqv1.ChangeKind_CHANGE_KIND_DELETED}})
		r.happened(again)
		rest, _ := r.happened(again)
		if len(rest) != 1 || rest[0].Id != "b" || rest[0].State != ddqv1.TaskState_TASK_STATE_UNSPECIFIED || rest[0].TimeUnixUs == 0 {
			r.Errorf("behind the cursor: %v", rest)
		}
	})
}

func TestWatchEndsWithTheNode(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.keepsLog()
		stream := r.watch(&ddqv1.WatchTasksRequest{Topic: "t"})
		r.happened(stream)
		go r.server.Stop(r.Context())
		if _, err := stream.Recv(); status.Code(err) != codes.Unavailable || statustest.Look(r.T, err).Retry == 0 {
			r.Errorf("the stream ended with %v", err)
		}
	})
}

// watching makes a call that begins to watch topic t, and reads until that fails.
func watching(req *ddqv1.WatchTasksRequest) func(r *rig) error {
	return func(r *rig) error {
		r.keepsLog()
		return failing(r, req)
	}
}

func failing(r *rig, req *ddqv1.WatchTasksRequest) error {
	req.Topic = "t"
	stream := r.watch(req)
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

var watchRefusals = []refusal{
	{"watch of an unknown topic", func(r *rig) error { return failing(r, &ddqv1.WatchTasksRequest{}) }, codes.NotFound, "NO_TOPIC", "topic", "", 0},
	{"watch of a topic that keeps no log", func(r *rig) error {
		must(r, created("t", nil)(r))
		return failing(r, &ddqv1.WatchTasksRequest{})
	}, codes.FailedPrecondition, "NOT_WATCHED", "topic", "", 0},
	{"watch behind no cursor", watching(&ddqv1.WatchTasksRequest{Cursor: []byte("no such")}), codes.InvalidArgument, "BAD_CURSOR", "cursor", "", 0},
	{"watch from two places", watching(&ddqv1.WatchTasksRequest{Cursor: []byte("no such"), From: ddqv1.WatchFrom_WATCH_FROM_OLDEST}), codes.InvalidArgument, "BAD_CURSOR", "from", "", 0},
	{"watch from nowhere", watching(&ddqv1.WatchTasksRequest{From: 7}), codes.InvalidArgument, "BAD_ENUM", "from", "", 0},
	{"watch of no kind", watching(&ddqv1.WatchTasksRequest{Kinds: []ddqv1.ChangeKind{99}}), codes.InvalidArgument, "BAD_ENUM", "kinds", "", 0},
	{"watch of the kind that is none", watching(&ddqv1.WatchTasksRequest{Kinds: []ddqv1.ChangeKind{0}}), codes.InvalidArgument, "BAD_ENUM", "kinds", "", 0},
	{"watch of a bad id", watching(&ddqv1.WatchTasksRequest{Ids: []string{"a b"}}), codes.InvalidArgument, "BAD_ID", "ids", "", 0},
	{"watch of an attribute that is not indexed", watching(&ddqv1.WatchTasksRequest{Attributes: []*ddqv1.Attribute{{Key: "tenant", Value: "a"}}}), codes.InvalidArgument, "NOT_INDEXED", "attributes", "", 0},
	{"watch of an attribute without a name", watching(&ddqv1.WatchTasksRequest{Attributes: []*ddqv1.Attribute{{Value: "a"}}}), codes.InvalidArgument, "BAD_ATTRIBUTES", "attributes", "", 0},
	{"watch of too many ids", watching(&ddqv1.WatchTasksRequest{Ids: make([]string, 101)}), codes.InvalidArgument, "BATCH_SIZE", "ids", "", 0},
	{"watch behind what is forgotten", func(r *rig) error {
		r.keepsLog()
		_, cursor := r.happened(r.watch(&ddqv1.WatchTasksRequest{Topic: "t"}))
		for _, ms := range []int64{0, 1000} { // the log ends, and another one begins
			_, err := r.admin.ConfigureTopic(r.Context(), &ddqv1.ConfigureTopicRequest{Name: "t", Policy: &ddqv1.TopicPolicy{WatchRetentionMs: &ms}})
			must(r, err)
		}
		return failing(r, &ddqv1.WatchTasksRequest{Cursor: cursor})
	}, codes.OutOfRange, "CURSOR_EXPIRED", "cursor", "", 0},
	{"watch with the store down", func(r *rig) error {
		r.keepsLog()
		r.later("a")
		r.store.fail(store.ErrUnavailable)
		return failing(r, &ddqv1.WatchTasksRequest{})
	}, codes.Unavailable, "STORE_DOWN", "", "", time.Second},
	{"watch retention too short", created("t", &ddqv1.TopicPolicy{WatchRetentionMs: proto.Int64(999)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.watch_retention_ms", "", 0},
	{"watch retention too long", created("t", &ddqv1.TopicPolicy{WatchRetentionMs: proto.Int64(604_800_001)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.watch_retention_ms", "", 0},
	{"too few events", created("t", &ddqv1.TopicPolicy{WatchMaxEvents: proto.Int64(999)}), codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "policy.watch_max_events", "", 0},
}

func TestRefusalsOfWatches(t *testing.T) { testRefusals(t, watchRefusals) }
