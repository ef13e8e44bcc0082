package status

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

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/server/status/statustest"
	"github.com/ddq-io/ddq/store"
)

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
		if got := statustest.Look(t, Of(t.Context(), quiet, "m", err)); got.Code != code {
			t.Errorf("kind %d is %v, want %v", kind, got.Code, code)
		}
		if got := Item(quiet, &problem.Error{Kind: kind}); codes.Code(got.Code) != code {
			t.Errorf("item of kind %d is %v, want %v", kind, codes.Code(got.Code), code)
		}
	}
}

func TestDetailsSayWhatTheErrorKnows(t *testing.T) {
	got := statustest.Look(t, Of(t.Context(), quiet, "m", &problem.Error{
		Kind: problem.Precondition, Reason: "TASK_RUNNING", Field: "id", Message: "task is running",
		RetryAfter: 3 * time.Second, State: store.StateRunning,
	}))
	if got.Reason != "TASK_RUNNING" || got.Field != "id" || got.Retry != 3*time.Second || got.Metadata["state"] != "running" {
		t.Errorf("got %+v", got)
	}
	item := Item(quiet, &problem.Error{Kind: problem.Exhausted, Reason: "ENQUEUE_PAUSED", Field: "topic", RetryAfter: 1500 * time.Microsecond})
	if item.Reason != "ENQUEUE_PAUSED" || item.Field != "topic" || item.RetryAfterMs != 2 {
		t.Errorf("item got %v", item)
	}
	if Item(quiet, nil) != nil {
		t.Error("no error became one")
	}
}

func TestWhatMayBeRepeatedSaysWhen(t *testing.T) {
	for _, kind := range []problem.Kind{problem.Unavailable, problem.Exhausted} {
		got := statustest.Look(t, Of(t.Context(), quiet, "m", &problem.Error{Kind: kind, Reason: "WHY"}))
		if got.Retry != retryAfter {
			t.Errorf("kind %d: retry after %v, want %v", kind, got.Retry, retryAfter)
		}
	}
	for _, e := range []*problem.Error{{Kind: problem.Invalid, Reason: "WHY"}, {Kind: problem.Exhausted, Reason: "WHY", RetryAfter: problem.NoRetry}} {
		if got := statustest.Look(t, Of(t.Context(), quiet, "m", e)); got.Retry != 0 {
			t.Errorf("what fails for good may be repeated after %v: %v", got.Retry, e)
		}
		if item := Item(quiet, e); item.RetryAfterMs != 0 {
			t.Errorf("as an item it may be repeated after %d ms: %v", item.RetryAfterMs, e)
		}
	}
}

func TestInternalErrorsGoToTheLogOnly(t *testing.T) {
	secret := "redis://user:secret@10.0.0.1"
	for _, err := range []error{
		errors.New(secret),
		&problem.Error{Kind: problem.Internal, Reason: "X", Field: "f", Message: secret},
	} {
		var log bytes.Buffer
		got := statustest.Look(t, Of(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), "m", err))
		if got.Code != codes.Internal || strings.Contains(got.Message, "secret") || got.Field != "" {
			t.Errorf("got %+v", got)
		}
		incident := got.Metadata["incident"]
		if incident == "" || !strings.Contains(log.String(), incident) || !strings.Contains(log.String(), secret) {
			t.Errorf("incident %q is not in the log: %s", incident, &log)
		}
	}
	if item := Item(quiet, &problem.Error{Message: secret}); strings.Contains(item.Message, "secret") {
		t.Errorf("item says %q", item.Message)
	}
}

func TestContextErrorsKeepTheirCode(t *testing.T) {
	for err, code := range map[error]codes.Code{
		context.Canceled:                         codes.Canceled,
		context.DeadlineExceeded:                 codes.DeadlineExceeded,
		grpcstatus.Error(codes.Aborted, "as is"): codes.Aborted,
	} {
		if got := statustest.Look(t, Of(t.Context(), quiet, "m", fmt.Errorf("x: %w", err))); got.Code != code {
			t.Errorf("%v became %v", err, got.Code)
		}
	}
}

func TestBytesThatAreNoTextDoNotCostTheDetails(t *testing.T) {
	got := statustest.Look(t, Of(t.Context(), quiet, "m", &problem.Error{
		Kind: problem.Invalid, Reason: "BAD_NAME", Field: "topic", Message: "bad name \xff",
	}))
	if got.Reason != "BAD_NAME" || got.Field != "topic" {
		t.Errorf("got %+v", got)
	}
}
