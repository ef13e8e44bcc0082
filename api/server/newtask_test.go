package server

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/server/guard"
	"github.com/ddq-io/ddq/api/server/newtask"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

func TestRequestBecomesTask(t *testing.T) {
	b := convertBatch([]*ddqv1.EnqueueRequest{{
		Topic: "mail", Id: "a", Payload: []byte("hi"),
		When:                &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(5*time.Second + 1)},
		Attributes:          []*ddqv1.Attribute{{Key: "k", Value: "v"}, {Key: "l", Value: "w"}},
		MaxRetries:          proto.Int32(0),
		VisibilityTimeoutMs: 1500,
		HandlerTimeoutMs:    2500,
		Backoff:             &ddqv1.Backoff{Kind: ddqv1.BackoffKind_BACKOFF_KIND_QUADRATIC, BaseMs: 10, MaxMs: 20, JitterPercent: 30},
		Expiry:              &ddqv1.EnqueueRequest_ExpireAfter{ExpireAfter: durationpb.New(time.Minute)},
	}, {
		Topic:      "mail",
		When:       &ddqv1.EnqueueRequest_ExecuteTime{ExecuteTime: &timestamppb.Timestamp{Seconds: 100, Nanos: 1}},
		Attributes: []*ddqv1.Attribute{{Key: "m"}},
		Expiry:     &ddqv1.EnqueueRequest_ExpireTime{ExpireTime: &timestamppb.Timestamp{Seconds: 200}},
	}})
	want := []service.NewTask{{
		Topic: "mail",
		Task: store.Task{
			ID: "a", Payload: []byte("hi"),
			Attributes:     []store.Attribute{{Key: "k", Value: "v"}, {Key: "l", Value: "w"}},
			Visibility:     1500 * time.Millisecond,
			HandlerTimeout: 2500 * time.Millisecond,
			Backoff:        &store.Backoff{Kind: store.BackoffQuadratic, Base: 10 * time.Millisecond, Max: 20 * time.Millisecond, Jitter: 30},
		},
		When:        service.When{Delay: 5001 * time.Millisecond},
		ExpireAfter: time.Minute,
	}, {
		Topic: "mail",
		Task:  store.Task{MaxRetries: -1, Attributes: []store.Attribute{{Key: "m"}}, Expires: 200_000},
		When:  service.When{At: 100_001},
	}}
	if b.Refused != nil || !reflect.DeepEqual(b.Tasks, want) {
		t.Errorf("got  %+v\nwant %+v\nrefused %v", b.Tasks, want, b.Refused)
	}
}

// Trace contexts of a frame lie in one piece; one that is malformed, and one of a task that is refused,
// is nobody else's.
func TestEachTaskOfABatchHasItsOwnTrace(t *testing.T) {
	one, other := "00-01000000000000000000000000000000-0200000000000000-01", "00-000000000000000000000000000000ff-000000000000000e-00"
	b := convertBatch([]*ddqv1.EnqueueRequest{
		{Id: "one", Traceparent: one, Tracestate: "a=1"},
		{Id: "none"},
		{Id: "malformed", Traceparent: one[:54] + "g"},
		{Id: "refused", Traceparent: other, MaxRetries: proto.Int32(-1)},
		{Id: "state alone", Tracestate: "a=1"},
		{Id: "other", Traceparent: other},
	})
	var got []string
	for i := range b.Tasks {
		n := &b.Tasks[i]
		text := fmt.Sprintf("%s cut=%v", n.Task.ID, n.TraceCut)
		if n.Task.Trace != nil {
			text += " " + wire.Traceparent(n.Task.Trace) + " " + n.Task.Trace.State
		}
		got = append(got, text)
	}
	if want := []string{"one cut=false " + one + " a=1", "none cut=false", "malformed cut=true", "state alone cut=true", "other cut=false " + other + " "}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestItemsAreRefusedAlone(t *testing.T) {
	b := convertBatch([]*ddqv1.EnqueueRequest{
		{Id: "a", Attributes: []*ddqv1.Attribute{{Key: "of", Value: "a"}}},
		{Id: "bad", MaxRetries: proto.Int32(-1), Attributes: []*ddqv1.Attribute{{Key: "of", Value: "bad"}}},
		{Id: "c", Attributes: []*ddqv1.Attribute{{Key: "of", Value: "c"}}},
		{Id: "late", When: &ddqv1.EnqueueRequest_Delay{Delay: &durationpb.Duration{Seconds: -1}}},
	})
	if len(b.Tasks) != 2 || b.Tasks[0].Task.Attributes[0].Value != "a" || b.Tasks[1].Task.Attributes[0].Value != "c" {
		t.Fatalf("got %+v", b.Tasks)
	}
	got := b.Results(quiet, []service.Enqueued{
		{ID: "a", Due: 7, Replaced: store.StateDead},
		{ID: "c", Err: &problem.Error{Kind: problem.Exists, Reason: "ID_CONFLICT"}},
	})
	var reasons []string
	for _, r := range got {
		reasons = append(reasons, r.Error.GetReason())
	}
	if want := []string{"", "OUT_OF_RANGE_FIELD", "ID_CONFLICT", "BAD_DELAY"}; !reflect.DeepEqual(reasons, want) {
		t.Errorf("got %q, want %q", reasons, want)
	}
	if got[0].ExecuteTime.AsTime().UnixMilli() != 7 || got[0].ReplacedState != ddqv1.TaskState_TASK_STATE_DEAD {
		t.Errorf("first is %v", got[0])
	}
}

func TestWireRulesOfARequest(t *testing.T) {
	for name, c := range map[string]struct {
		request *ddqv1.EnqueueRequest
		reason  string
		field   string
	}{
		"negative delay":       {&ddqv1.EnqueueRequest{When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(-1)}}, "BAD_DELAY", "delay"},
		"forgotten time":       {&ddqv1.EnqueueRequest{When: &ddqv1.EnqueueRequest_ExecuteTime{}}, "BAD_TIME", "execute_time"},
		"expires at once":      {&ddqv1.EnqueueRequest{Expiry: &ddqv1.EnqueueRequest_ExpireAfter{}}, "BAD_DELAY", "expire_after"},
		"bad expiry":           {&ddqv1.EnqueueRequest{Expiry: &ddqv1.EnqueueRequest_ExpireTime{ExpireTime: &timestamppb.Timestamp{Nanos: -1}}}, "BAD_TIME", "expire_time"},
		"negative retries":     {&ddqv1.EnqueueRequest{MaxRetries: proto.Int32(-1)}, "OUT_OF_RANGE_FIELD", "max_retries"},
		"visibility overflows": {&ddqv1.EnqueueRequest{VisibilityTimeoutMs: 1 << 62}, "OUT_OF_RANGE_FIELD", "visibility_timeout_ms"},
		"unknown backoff":      {&ddqv1.EnqueueRequest{Backoff: &ddqv1.Backoff{Kind: 99}}, "BAD_ENUM", "backoff.kind"},
		"backoff of no kind":   {&ddqv1.EnqueueRequest{Backoff: &ddqv1.Backoff{}}, "BAD_ENUM", "backoff.kind"},
		"backoff overflows":    {&ddqv1.EnqueueRequest{Backoff: &ddqv1.Backoff{Kind: 1, MaxMs: 1 << 62}}, "OUT_OF_RANGE_FIELD", "backoff.max_ms"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newtask.Read(new(service.NewTask), c.request)
			if e == nil || e.Kind != problem.Invalid || e.Reason != c.reason || e.Field != c.field {
				t.Errorf("got %+v, want %s of %s", e, c.reason, c.field)
			}
		})
	}
}

func FuzzNewBatch(f *testing.F) {
	seed, _ := proto.Marshal(&ddqv1.EnqueueStreamRequest{Sequence: 1, Tasks: []*ddqv1.EnqueueRequest{
		{Topic: "t", When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Second)}, Attributes: []*ddqv1.Attribute{{Key: "k"}}},
		{Topic: "t", Backoff: &ddqv1.Backoff{Kind: 7}},
	}})
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := new(ddqv1.EnqueueStreamRequest)
		if r.UnmarshalVT(data) != nil {
			return
		}
		b := newtask.NewBatch(r.Tasks, guard.Enqueue{})
		results := b.Results(quiet, make([]service.Enqueued, len(b.Tasks)))
		if len(results) != len(r.Tasks) {
			t.Fatalf("%d answers to %d tasks", len(results), len(r.Tasks))
		}
		for i, result := range results {
			if b.Refused != nil && (b.Refused[i] != nil) != (result.Error != nil) {
				t.Fatalf("task %d: refused %v, answered %v", i, b.Refused[i], result)
			}
		}
		if _, err := proto.Marshal(&ddqv1.EnqueueStreamResponse{Results: results}); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkBatchOf512(b *testing.B) {
	requests := make([]*ddqv1.EnqueueRequest, 512)
	for i := range requests {
		requests[i] = &ddqv1.EnqueueRequest{Topic: "t", Payload: make([]byte, 200), When: &ddqv1.EnqueueRequest_Delay{Delay: durationpb.New(time.Second)}}
	}
	done := make([]service.Enqueued, len(requests))
	b.ReportAllocs()
	for b.Loop() {
		newtask.NewBatch(requests, guard.Enqueue{}).Results(quiet, done)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/task")
}

// convertBatch is newtask.NewBatch for who may do everything.
func convertBatch(requests []*ddqv1.EnqueueRequest) newtask.Batch {
	return newtask.NewBatch(requests, guard.Enqueue{})
}
