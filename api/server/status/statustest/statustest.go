// Package statustest takes apart the errors that callers see, for tests.
package statustest

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Seen is an error as a client sees it.
type Seen struct {
	Code     codes.Code
	Message  string
	Reason   string
	Metadata map[string]string
	Field    string
	Retry    time.Duration
}

// Look takes an error apart.
func Look(t testing.TB, err error) (s Seen) {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v (%T) is not a status", err, err)
	}
	s.Code, s.Message = st.Code(), st.Message()
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.Domain != "ddq" {
				t.Errorf("domain is %q", d.Domain)
			}
			s.Reason, s.Metadata = d.Reason, d.Metadata
		case *errdetails.BadRequest:
			s.Field = d.FieldViolations[0].Field
		case *errdetails.RetryInfo:
			s.Retry = d.RetryDelay.AsDuration()
		default:
			t.Errorf("unexpected detail %T", d)
		}
	}
	return s
}
