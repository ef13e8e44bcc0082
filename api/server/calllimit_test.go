package server

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// limited makes a token of a few calls a second.
func (r *guardedRig) limited(calls int32) string {
	r.Helper()
	made, err := ddqv1.NewAccessServiceClient(r.conn).CreateToken(r.as(r.root), &ddqv1.CreateTokenRequest{
		Name: "limited", CallsPerSecond: calls, Grants: []*ddqv1.Grant{{Verbs: []string{"producer", "worker", "viewer"}, Topics: "mail"}},
	})
	if err != nil {
		r.Fatal(err)
	}
	if made.Token.CallsPerSecond != calls {
		r.Errorf("made %v", made.Token)
	}
	return made.Secret
}

func TestATokenMakesNoMoreCallsThanItMay(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		ctx := r.as(r.limited(3))
		enqueue := func() error {
			_, err := r.queue.Enqueue(ctx, &ddqv1.EnqueueRequest{Topic: "mail"})
			return err
		}
		for range 3 {
			if err := enqueue(); err != nil {
				t.Fatal(err)
			}
		}
		err := enqueue()
		if status.Code(err) != codes.ResourceExhausted || reasonOf(err) != "RATE_LIMITED" {
			t.Fatalf("one too many: %v", err)
		}
		pause := time.Duration(0)
		for _, d := range status.Convert(err).Details() {
			if info, ok := d.(*errdetails.RetryInfo); ok {
				pause = info.RetryDelay.AsDuration()
			}
		}
		if pause <= 0 || pause > 334*time.Millisecond {
			t.Errorf("come back after %v", pause)
		}
		for range 10 { // settling is never too much
			if _, err := r.queue.Ack(ctx, &ddqv1.AckRequest{Topic: "mail", Ack: &ddqv1.Ack{TaskId: "none"}}); status.Code(err) == codes.ResourceExhausted {
				t.Fatalf("an ack: %v", err)
			}
		}
		time.Sleep(pause)
		if err := enqueue(); err != nil {
			t.Errorf("after the pause: %v", err)
		}
		time.Sleep(time.Second)
		p, err := ddqv1.NewAccessServiceClient(r.conn).WhoAmI(ctx, &ddqv1.WhoAmIRequest{})
		if err != nil || p.CallsPerSecond != 3 {
			t.Errorf("%v, %v", p, err)
		}
	})
}

func TestStreamsOfATokenWait(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		stream, err := r.queue.EnqueueStream(r.as(r.limited(2)))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for i := range 6 { // the call is one of the two, and pays for the first message
			if err := stream.Send(&ddqv1.EnqueueStreamRequest{Tasks: []*ddqv1.EnqueueRequest{{Topic: "mail"}}}); err != nil {
				t.Fatal(err)
			}
			if answer, err := stream.Recv(); err != nil || answer.Results[0].GetError() != nil {
				t.Fatalf("message %d: %v, %v", i, answer, err)
			}
		}
		if took := time.Since(begun); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("six messages took %v", took)
		}
	})
}
