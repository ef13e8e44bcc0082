package client

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/api/ddqv1"
)

func detailed(t *testing.T, code codes.Code, reason, field string, retry time.Duration) error {
	t.Helper()
	st, err := status.New(code, "what went wrong").WithDetails(
		&errdetails.ErrorInfo{Reason: reason, Domain: "ddq"},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: field}}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	if err != nil {
		t.Fatal(err)
	}
	return st.Err()
}

func TestErrorsCarryTheDetails(t *testing.T) {
	got := fromRPC(detailed(t, codes.InvalidArgument, "BAD_NAME", "topic", time.Second))
	got.cause = nil
	want := Error{Code: codes.InvalidArgument, Reason: "BAD_NAME", Field: "topic", Message: "what went wrong", RetryAfter: time.Second}
	if *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	if got.Error() != "what went wrong (BAD_NAME)" {
		t.Errorf("reads %q", got.Error())
	}
	item := fromItem(&ddqv1.Error{Code: 3, Reason: "BAD_NAME", Field: "topic", Message: "what went wrong", RetryAfterMs: 1000})
	if *item != want {
		t.Errorf("item: got %+v, want %+v", *item, want)
	}
}

// An error has the id that the server gave the call: of one call, and of a stream.
func TestErrorsCarryTheRequestID(t *testing.T) {
	named := func(ctx context.Context, id string) error {
		if id != "" {
			if err := grpc.SetTrailer(ctx, metadata.Pairs("ddq-request-id", id)); err != nil {
				t.Error(err)
			}
		}
		return detailed(t, codes.NotFound, "NO_TOPIC", "name", 0)
	}
	for _, id := range []string{"", "0192f0c1-0000-7000-8000-00000000000a"} {
		lis := bufconn.Listen(1 << 20)
		server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error { return named(s.Context(), id) }))
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(lis) })
		c, err := Dial("passthrough:///x", Config{MaxElapsed: -1, DialOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, unary := c.DescribeTopic(t.Context(), "none")
		_, streamed := c.DeleteTasks(t.Context(), "none", Filter{}, Bulk{})
		for what, err := range map[string]error{"unary": unary, "streamed": streamed} {
			var e *Error
			if !errors.As(err, &e) || e.RequestID != id || !errors.Is(err, ErrNotFound) || e.Reason != "NO_TOPIC" || e.Error() != "what went wrong (NO_TOPIC)" {
				t.Errorf("%s: %+v, want the id %q", what, err, id)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		serving.Wait()
	}
}

func TestErrorsMatchTheirSentinel(t *testing.T) {
	all := []error{
		ErrInvalid, ErrOutOfRange, ErrNotFound, ErrExists, ErrPrecondition, ErrExhausted, ErrUnavailable,
		ErrUnknown, ErrDenied, ErrInternal, context.DeadlineExceeded, context.Canceled,
	}
	for code, want := range map[codes.Code]error{
		codes.InvalidArgument: ErrInvalid, codes.OutOfRange: ErrOutOfRange, codes.NotFound: ErrNotFound,
		codes.AlreadyExists: ErrExists, codes.FailedPrecondition: ErrPrecondition, codes.ResourceExhausted: ErrExhausted,
		codes.Unavailable: ErrUnavailable, codes.Unknown: ErrUnknown, codes.Unauthenticated: ErrDenied,
		codes.PermissionDenied: ErrDenied, codes.Internal: ErrInternal, codes.DataLoss: ErrInternal,
		codes.DeadlineExceeded: context.DeadlineExceeded, codes.Canceled: context.Canceled,
	} {
		err := plain(fromRPC(status.Error(code, "x")))
		for _, s := range all {
			if errors.Is(err, s) != (s == want) {
				t.Errorf("%v: Is(%v) = %v", code, s, s != want)
			}
		}
	}
	if lost := fromItem(&ddqv1.Error{Code: int32(codes.FailedPrecondition), Reason: "HOLD_LOST"}); !errors.Is(lost, ErrHoldLost) || !errors.Is(lost, ErrPrecondition) {
		t.Error("HOLD_LOST is neither a lost hold nor a failed precondition")
	}
}

// Reads come back by themselves after any passing failure; a delete only after
// one that says when, since its answer changes with the second time.
func TestUnaryCallsAreRepeatedWhenSafe(t *testing.T) {
	lost := status.Error(codes.Unavailable, "connection lost")
	refused := detailed(t, codes.Unavailable, "DRAINING", "", time.Second)
	for _, c := range []struct {
		name  string
		call  func(context.Context, *Client) error
		fail  error
		tries int
	}{
		{"read, lost", get, lost, 2},
		{"read, refused", get, refused, 2},
		{"read, wrong", get, status.Error(codes.InvalidArgument, ""), 1},
		{"read, too large", get, status.Error(codes.ResourceExhausted, ""), 1},
		{"delete, lost", del, lost, 1},
		{"delete, refused", del, refused, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				f := &fakeServer{unary: func(string) error {
					if tries++; tries == 1 {
						return c.fail
					}
					return nil
				}}
				err := c.call(t.Context(), start(t, f, Config{}))
				if tries != c.tries || (err == nil) != (c.tries == 2) {
					t.Errorf("tried %d times, want %d; got %v", tries, c.tries, err)
				}
			})
		})
	}
}

func get(ctx context.Context, c *Client) error { _, err := c.Get(ctx, "mail", "a"); return err }
func del(ctx context.Context, c *Client) error { _, err := c.Delete(ctx, "mail", "a"); return err }
