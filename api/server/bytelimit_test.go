package server

import (
	"context"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// weighed is the context of calls with a token of so many bytes a second.
func (r *guardedRig) weighed(bytes int32) context.Context {
	r.Helper()
	made, err := ddqv1.NewAccessServiceClient(r.conn).CreateToken(r.as(r.root), &ddqv1.CreateTokenRequest{
		Name: "weighed", BytesPerSecond: bytes, Grants: []*ddqv1.Grant{{Verbs: []string{"producer", "worker", "viewer", "operator"}, Topics: "*"}},
	})
	if err != nil {
		r.Fatal(err)
	}
	if made.Token.BytesPerSecond != bytes {
		r.Errorf("made %v", made.Token)
	}
	return r.as(made.Secret)
}

// pauseOf is when to come back after a refusal.
func pauseOf(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.RetryDelay.AsDuration()
		}
	}
	return 0
}

// tooMuch checks that a call is refused, and until when.
func (r *guardedRig) tooMuch(what string, err error, want time.Duration) {
	r.Helper()
	if pause := pauseOf(err); status.Code(err) != codes.ResourceExhausted || reasonOf(err) != "RATE_LIMITED" || (pause-want).Abs() > 2*time.Millisecond {
		r.Errorf("%s: %v, come back after %v, want %v", what, err, pause, want)
	}
}

func TestATokenSendsNoMoreThanItMay(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx := r.weighed(1000)
		enqueue := func(bytes int) error {
			_, err := r.queue.Enqueue(ctx, &ddqv1.EnqueueRequest{Topic: "mail", Payload: make([]byte, bytes)})
			return err
		}
		for _, bytes := range []int{600, 400, 0} {
			if err := enqueue(bytes); err != nil {
				t.Fatal(err)
			}
		}
		err := enqueue(250)
		r.tooMuch("more than a second's worth", err, 250*time.Millisecond)
		time.Sleep(pauseOf(err) - 2*time.Millisecond)
		r.tooMuch("before the pause is over", enqueue(250), 2*time.Millisecond)
		time.Sleep(2 * time.Millisecond)
		if err := enqueue(250); err != nil {
			t.Errorf("after the pause: %v", err)
		}
		time.Sleep(time.Second)
		if err := enqueue(5000); err != nil {
			t.Errorf("more than a second's worth, after a rest: %v", err)
		}
		r.tooMuch("after it", enqueue(1), 4001*time.Millisecond)
		p, err := ddqv1.NewAccessServiceClient(r.conn).WhoAmI(ctx, &ddqv1.WhoAmIRequest{})
		if err != nil || p.BytesPerSecond != 1000 {
			t.Errorf("%v, %v", p, err)
		}
	})
}

// What was taken can be finished, and what is read costs nothing, however much was sent.
func TestSettlingIsNeverTooMuch(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx := r.weighed(10)
		if _, err := r.queue.Enqueue(ctx, &ddqv1.EnqueueRequest{Topic: "mail", Id: "a", Payload: make([]byte, 100_000)}); err != nil {
			t.Fatal(err)
		}
		taken, err := r.queue.Retrieve(ctx, &ddqv1.RetrieveRequest{Topic: "mail", MaxTasks: 1, Worker: "w", WaitMs: 1000})
		if err != nil || len(taken.Deliveries) != 1 {
			t.Fatalf("%v, %v", taken, err)
		}
		d := taken.Deliveries[0]
		ack := &ddqv1.Ack{TaskId: d.Task.Id, HoldToken: d.HoldToken, Result: make([]byte, 1000)}
		if _, err := r.queue.Ack(ctx, &ddqv1.AckRequest{Topic: "mail", Ack: ack}); err != nil {
			t.Errorf("an ack with a result: %v", err)
		}
		if _, err := r.admin.ListTopics(ctx, &ddqv1.ListTopicsRequest{}); err != nil {
			t.Errorf("a listing: %v", err)
		}
	})
}

// Whatever has payloads is counted, one call as much as many tasks in one.
func TestWhatHasPayloadsIsCounted(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		if _, err := r.queue.Enqueue(r.as(r.root), &ddqv1.EnqueueRequest{Topic: "mail", Id: "a", When: &ddqv1.EnqueueRequest_Delay{Delay: durationWire(time.Hour)}}); err != nil {
			t.Fatal(err)
		}
		payload := make([]byte, 300)
		for what, call := range map[string]func(context.Context) error{
			"batch": func(ctx context.Context) error {
				_, err := r.queue.EnqueueBatch(ctx, &ddqv1.EnqueueBatchRequest{Tasks: []*ddqv1.EnqueueRequest{{Topic: "mail", Payload: payload[:200]}, {Topic: "mail", Payload: payload[:100]}}})
				return err
			},
			"update": func(ctx context.Context) error {
				_, err := r.queue.UpdateTask(ctx, &ddqv1.UpdateTaskRequest{Topic: "mail", Id: "a", Payload: payload})
				return err
			},
			"schedule": func(ctx context.Context) error {
				_, err := r.schedules.PutSchedule(ctx, &ddqv1.PutScheduleRequest{Schedule: nightly(func(s *ddqv1.Schedule) {
					s.Topic, s.Run = "mail", &ddqv1.Schedule_Task{Task: &ddqv1.EnqueueRequest{Payload: payload}}
				})})
				return err
			},
			"workflow": func(ctx context.Context) error {
				_, err := r.workflows.SubmitWorkflow(ctx, &ddqv1.SubmitWorkflowRequest{Workflow: &ddqv1.Workflow{Topic: "mail", Input: payload}})
				return err
			},
		} {
			ctx := r.weighed(1)
			if err := call(ctx); status.Code(err) == codes.ResourceExhausted {
				t.Errorf("%s: %v", what, err)
			}
			_, err := r.queue.Enqueue(ctx, &ddqv1.EnqueueRequest{Topic: "mail", Payload: payload[:1]})
			r.tooMuch("after a "+what, err, 300*time.Second)
		}
	})
}

func TestStreamsWaitForTheirPayloads(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		stream, err := r.queue.EnqueueStream(r.weighed(1000))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for i := range 4 {
			tasks := []*ddqv1.EnqueueRequest{{Topic: "mail", Payload: make([]byte, 500)}, {Topic: "mail", Payload: make([]byte, 500)}}
			if err := stream.Send(&ddqv1.EnqueueStreamRequest{Tasks: tasks}); err != nil {
				t.Fatal(err)
			}
			if answer, err := stream.Recv(); err != nil || answer.Results[0].GetError() != nil {
				t.Fatalf("message %d: %v, %v", i, answer, err)
			}
		}
		if took := time.Since(begun); took < 3*time.Second || took > 3100*time.Millisecond {
			t.Errorf("four messages took %v", took)
		}
	})
}

// A stream whose deadline is nearer than its turn is told so.
func TestStreamsThatCannotWaitAreTold(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx, cancel := context.WithTimeout(r.weighed(10), time.Second)
		defer cancel()
		stream, err := r.queue.EnqueueStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := stream.Send(&ddqv1.EnqueueStreamRequest{Tasks: []*ddqv1.EnqueueRequest{{Topic: "mail", Payload: make([]byte, 100)}}}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		r.tooMuch("the second message", err, 10*time.Second)
	})
}
