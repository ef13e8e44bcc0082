package server

import (
	"context"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// bounded is a context of calls in a namespace that has quotas.
func (r *guardedRig) bounded(name string, quotas *ddqv1.Quotas) context.Context {
	r.Helper()
	if _, err := ddqv1.NewAccessServiceClient(r.conn).CreateNamespace(r.as(r.root), &ddqv1.CreateNamespaceRequest{Name: name, Quotas: quotas}); err != nil {
		r.Fatal(err)
	}
	return inNamespace(r.as(r.root), name)
}

// enqueue makes one task, and returns the reason of a refusal and the pause that it asks for.
func (r *guardedRig) enqueue(ctx context.Context, payload int) (reason string, pause time.Duration) {
	r.Helper()
	_, err := r.queue.Enqueue(ctx, &ddqv1.EnqueueRequest{Topic: "mail", Payload: make([]byte, payload), When: &ddqv1.EnqueueRequest_Delay{Delay: durationWire(time.Hour)}})
	for _, d := range status.Convert(err).Details() {
		if retry, ok := d.(*errdetails.RetryInfo); ok {
			pause = retry.RetryDelay.AsDuration()
		}
	}
	return reasonOf(err), pause
}

func TestTheRateOfANamespaceIsThatOfAllItsTopics(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx := r.bounded("acme", &ddqv1.Quotas{EnqueuePerSecond: proto.Float64(10), EnqueueBurst: proto.Int64(3)})
		for i := range 3 {
			if reason, _ := r.enqueue(ctx, 1); reason != "" {
				t.Fatalf("task %d: %s", i, reason)
			}
		}
		reason, pause := r.enqueue(ctx, 1)
		if reason != "RATE_LIMITED" || pause <= 0 || pause > 101*time.Millisecond {
			t.Fatalf("the one after: %q, pause %v", reason, pause)
		}
		if reason, _ := r.enqueue(r.as(r.root), 1); reason != "" {
			t.Errorf("in another namespace: %s", reason)
		}
		time.Sleep(pause)
		if reason, _ := r.enqueue(ctx, 1); reason != "" {
			t.Errorf("after the pause: %s", reason)
		}
		time.Sleep(time.Minute)
		out, err := r.queue.EnqueueBatch(ctx, &ddqv1.EnqueueBatchRequest{Tasks: []*ddqv1.EnqueueRequest{{Topic: "a"}, {Topic: "b"}, {Topic: "a"}, {Topic: "b"}}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"", "", "", "RATE_LIMITED"} {
			if got := out.Results[i].GetError().GetReason(); got != want {
				t.Errorf("item %d: %q, want %q", i, got, want)
			}
		}
	})
}

func TestWhatWaitsInANamespaceIsBounded(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx := r.bounded("acme", &ddqv1.Quotas{MaxPending: proto.Int64(5), MaxPayloadBytes: proto.Int64(8)})
		if reason, _ := r.enqueue(ctx, 9); reason != "PAYLOAD_TOO_LARGE" {
			t.Errorf("9 bytes: %q", reason)
		}
		for i := range 5 {
			if reason, _ := r.enqueue(ctx, 8); reason != "" {
				t.Fatalf("task %d: %s", i, reason)
			}
			time.Sleep(50 * time.Millisecond)
		}
		if reason, pause := r.enqueue(ctx, 1); reason != "QUOTA" || pause != time.Second {
			t.Errorf("the sixth: %q, pause %v", reason, pause)
		}
		if reason, _ := r.enqueue(r.as(r.root), 9); reason != "" {
			t.Errorf("in another namespace: %s", reason)
		}
		if _, err := ddqv1.NewAccessServiceClient(r.conn).ConfigureNamespace(r.as(r.root), &ddqv1.ConfigureNamespaceRequest{Name: "acme", Quotas: &ddqv1.Quotas{MaxPending: proto.Int64(0)}}); err != nil {
			t.Fatal(err)
		}
		if reason, _ := r.enqueue(ctx, 1); reason != "" {
			t.Errorf("without the quota: %s", reason)
		}
		if reason, _ := r.enqueue(ctx, 9); reason != "PAYLOAD_TOO_LARGE" {
			t.Errorf("the other quota is gone: %q", reason)
		}
	})
}

// What is taken can be ended, however full the namespace is.
func TestSettlingPassesQuotas(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx := r.bounded("acme", &ddqv1.Quotas{EnqueuePerSecond: proto.Float64(1), MaxPending: proto.Int64(1), MaxPayloadBytes: proto.Int64(1), BytesPerSecond: proto.Int64(1), MaxTopics: proto.Int64(1)})
		if _, err := r.queue.Enqueue(ctx, &ddqv1.EnqueueRequest{Topic: "mail", Id: "a"}); err != nil {
			t.Fatal(err)
		}
		got, err := r.queue.Retrieve(ctx, &ddqv1.RetrieveRequest{Topic: "mail", WaitMs: 1000})
		if err != nil || len(got.Deliveries) != 1 {
			t.Fatalf("retrieve: %v, %v", got, err)
		}
		d := got.Deliveries[0]
		if _, err := r.queue.Ack(ctx, &ddqv1.AckRequest{Topic: "mail", Ack: &ddqv1.Ack{TaskId: "a", HoldToken: d.HoldToken, Result: []byte("more than a byte"),
			Enqueue: []*ddqv1.EnqueueRequest{{Topic: "next", Id: "b"}, {Topic: "next", Id: "c"}}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		all, err := r.queue.ListTasks(ctx, &ddqv1.ListTasksRequest{Topic: "next"})
		if err != nil || len(all.Tasks) != 2 || all.Tasks[0].Topic != "next" {
			t.Errorf("next: %v, %v", all, err)
		}
	})
}

func TestQuotasAreChecked(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		for _, q := range []*ddqv1.Quotas{
			{EnqueuePerSecond: proto.Float64(-1)}, {EnqueuePerSecond: proto.Float64(1e7)}, {EnqueueBurst: proto.Int64(1e6)},
			{MaxPending: proto.Int64(-1)}, {MaxPayloadBytes: proto.Int64(1e10)}, {BytesPerSecond: proto.Int64(-1)}, {BytesPerSecond: proto.Int64(1e13)},
			{MaxTopics: proto.Int64(-1)}, {MaxSchedules: proto.Int64(1e10)}, {MaxStreams: proto.Int64(1e7)},
		} {
			if _, err := ddqv1.NewAccessServiceClient(r.conn).CreateNamespace(r.as(r.root), &ddqv1.CreateNamespaceRequest{Name: "acme", Quotas: q}); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%v: %v", q, err)
			}
		}
	})
}

func TestTopicsThatWorkersAndSchedulesWouldCreateAreBounded(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx := r.bounded("acme", &ddqv1.Quotas{MaxTopics: proto.Int64(1)})
		if reason, _ := r.enqueue(ctx, 1); reason != "" {
			t.Fatal(reason)
		}
		for what, call := range map[string]func() error{
			"create": func() error {
				_, err := r.admin.CreateTopic(ctx, &ddqv1.CreateTopicRequest{Name: "more"})
				return err
			},
			"retrieve": func() error {
				_, err := r.queue.Retrieve(ctx, &ddqv1.RetrieveRequest{Topic: "more"})
				return err
			},
			"schedule": func() error {
				_, err := r.schedules.PutSchedule(ctx, &ddqv1.PutScheduleRequest{Schedule: &ddqv1.Schedule{
					Topic: "more", Name: "daily", Timetable: &ddqv1.Timetable{Entries: []*ddqv1.TimetableEntry{every(time.Hour)}}, Run: &ddqv1.Schedule_Task{Task: &ddqv1.EnqueueRequest{}},
				}})
				return err
			},
		} {
			if err := call(); reasonOf(err) != "QUOTA" {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestWorkerStreamsOfANamespaceAreBounded(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx := r.bounded("acme", &ddqv1.Quotas{MaxStreams: proto.Int64(1)})
		subscribe := func(ctx context.Context) (ddqv1.DelayQueueService_SubscribeClient, error) {
			stream, err := r.queue.Subscribe(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "mail", Worker: "w"}}); err != nil {
				t.Fatal(err)
			}
			_, err = stream.Recv()
			return stream, err
		}
		first, end := context.WithCancel(ctx)
		if _, err := subscribe(first); err != nil {
			t.Fatal(err)
		}
		if _, err := subscribe(ctx); reasonOf(err) != "QUOTA" {
			t.Errorf("the second: %v", err)
		}
		if _, err := r.queue.Retrieve(ctx, &ddqv1.RetrieveRequest{Topic: "mail"}); err != nil {
			t.Errorf("a poll: %v", err)
		}
		end()
		time.Sleep(time.Second)
		stream, err := subscribe(ctx)
		if err != nil {
			t.Fatalf("after the end of the first: %v", err)
		}
		_ = stream.CloseSend()
	})
}

func TestTheUseOfANamespaceIsToldToWhoMayChangeIt(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx := r.bounded("acme", &ddqv1.Quotas{MaxPending: proto.Int64(5), MaxStreams: proto.Int64(3)})
		for range 2 {
			if reason, _ := r.enqueue(ctx, 1); reason != "" {
				t.Fatal(reason)
			}
		}
		access := ddqv1.NewAccessServiceClient(r.conn)
		got, err := access.GetNamespace(r.as(r.root), &ddqv1.GetNamespaceRequest{Name: "acme"})
		want := &ddqv1.NamespaceUsage{Pending: 2, Topics: 1, Streams: proto.Int64(0)}
		if err != nil || got.Namespace.Quotas.GetMaxPending() != 5 || !proto.Equal(got.Usage, want) {
			t.Errorf("%v, %v, want the use %v", got, err, want)
		}
		made, err := access.CreateToken(ctx, &ddqv1.CreateTokenRequest{Name: "ann", Grants: []*ddqv1.Grant{{Verbs: []string{"admin"}, Topics: "*"}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := access.GetNamespace(inNamespace(r.as(made.Secret), "acme"), &ddqv1.GetNamespaceRequest{Name: "acme"}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("who administers it is told: %v", err)
		}
	})
}
