package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// seen is an error as a client sees it.
type seen struct {
	code     codes.Code
	message  string
	reason   string
	metadata map[string]string
	field    string
	retry    time.Duration
}

// look takes an error apart.
func look(t *testing.T, err error) (s seen) {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v (%T) is not a status", err, err)
	}
	s.code, s.message = st.Code(), st.Message()
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.Domain != "ddq" {
				t.Errorf("domain is %q", d.Domain)
			}
			s.reason, s.metadata = d.Reason, d.Metadata
		case *errdetails.BadRequest:
			s.field = d.FieldViolations[0].Field
		case *errdetails.RetryInfo:
			s.retry = d.RetryDelay.AsDuration()
		default:
			t.Errorf("unexpected detail %T", d)
		}
	}
	return s
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestEveryKindHasItsCode(t *testing.T) {
	want := map[problem.Kind]codes.Code{
		problem.Internal:     codes.Internal,
		problem.Invalid:      codes.InvalidArgument,
		problem.OutOfRange:   codes.OutOfRange,
		problem.NotFound:     codes.NotFound,
		problem.Exists:       codes.AlreadyExists,
		problem.Precondition: codes.FailedPrecondition,
		problem.Exhausted:    codes.ResourceExhausted,
		problem.Unavailable:  codes.Unavailable,
		problem.Unknown:      codes.Unknown,
		problem.Canceled:     codes.Canceled,
		problem.Deadline:     codes.DeadlineExceeded,
		problem.Denied:       codes.PermissionDenied,

		problem.Unauthenticated:     codes.Unauthenticated,
		problem.Unauthenticated + 1: codes.Internal, // a kind nobody told us of
	}
	for kind, code := range want {
		err := fmt.Errorf("wrapped: %w", &problem.Error{Kind: kind, Reason: "WHY", Message: "says so"})
		if got := look(t, toStatus(t.Context(), quiet, "m", err)); got.code != code {
			t.Errorf("kind %d is %v, want %v", kind, got.code, code)
		}
		if got := itemError(quiet, &problem.Error{Kind: kind}); codes.Code(got.Code) != code {
			t.Errorf("item of kind %d is %v, want %v", kind, codes.Code(got.Code), code)
		}
	}
}

func TestDetailsSayWhatTheErrorKnows(t *testing.T) {
	got := look(t, toStatus(t.Context(), quiet, "m", &problem.Error{
		Kind: problem.Precondition, Reason: "TASK_RUNNING", Field: "id", Message: "task is running",
		RetryAfter: 3 * time.Second, State: store.StateRunning,
	}))
	if got.reason != "TASK_RUNNING" || got.field != "id" || got.retry != 3*time.Second || got.metadata["state"] != "running" {
		t.Errorf("got %+v", got)
	}
	item := itemError(quiet, &problem.Error{Kind: problem.Exhausted, Reason: "ENQUEUE_PAUSED", Field: "topic", RetryAfter: 1500 * time.Microsecond})
	if item.Reason != "ENQUEUE_PAUSED" || item.Field != "topic" || item.RetryAfterMs != 2 {
		t.Errorf("item got %v", item)
	}
	if itemError(quiet, nil) != nil {
		t.Error("no error became one")
	}
}

func TestWhatMayBeRepeatedSaysWhen(t *testing.T) {
	for _, kind := range []problem.Kind{problem.Unavailable, problem.Exhausted} {
		got := look(t, toStatus(t.Context(), quiet, "m", &problem.Error{Kind: kind, Reason: "WHY"}))
		if got.retry != retryAfter {
			t.Errorf("kind %d: retry after %v, want %v", kind, got.retry, retryAfter)
		}
	}
	got := look(t, toStatus(t.Context(), quiet, "m", &problem.Error{Kind: problem.Invalid, Reason: "WHY"}))
	if got.retry != 0 {
		t.Errorf("an invalid request may be repeated after %v", got.retry)
	}
}

func TestInternalErrorsGoToTheLogOnly(t *testing.T) {
	secret := "redis://user:secret@10.0.0.1"
	for _, err := range []error{
		errors.New(secret),
		&problem.Error{Kind: problem.Internal, Reason: "X", Field: "f", Message: secret},
	} {
		var log bytes.Buffer
		got := look(t, toStatus(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), "m", err))
		if got.code != codes.Internal || strings.Contains(got.message, "secret") || got.field != "" {
			t.Errorf("got %+v", got)
		}
		incident := got.metadata["incident"]
		if incident == "" || !strings.Contains(log.String(), incident) || !strings.Contains(log.String(), secret) {
			t.Errorf("incident %q is not in the log: %s", incident, &log)
		}
	}
	if item := itemError(quiet, &problem.Error{Message: secret}); strings.Contains(item.Message, "secret") {
		t.Errorf("item says %q", item.Message)
	}
}

func TestContextErrorsKeepTheirCode(t *testing.T) {
	for err, code := range map[error]codes.Code{
		context.Canceled:                     codes.Canceled,
		context.DeadlineExceeded:             codes.DeadlineExceeded,
		status.Error(codes.Aborted, "as is"): codes.Aborted,
	} {
		if got := look(t, toStatus(t.Context(), quiet, "m", fmt.Errorf("x: %w", err))); got.code != code {
			t.Errorf("%v became %v", err, got.code)
		}
	}
}

func TestBytesThatAreNoTextDoNotCostTheDetails(t *testing.T) {
	got := look(t, toStatus(t.Context(), quiet, "m", &problem.Error{
		Kind: problem.Invalid, Reason: "BAD_NAME", Field: "topic", Message: "bad name \xff",
	}))
	if got.reason != "BAD_NAME" || got.field != "topic" {
		t.Errorf("got %+v", got)
	}
}
