package status

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/requestid"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// domain is the ErrorInfo domain of every error.
const domain = "ddq"

// retryAfter is the pause named when a use case says that a call may be
// repeated and not when.
const retryAfter = time.Second

var kindCodes = map[problem.Kind]codes.Code{
	problem.Internal:     codes.Internal,
	problem.Invalid:      codes.InvalidArgument,
	problem.OutOfRange:   codes.OutOfRange,
	problem.NotFound:     codes.NotFound,
	problem.Exists:       codes.AlreadyExists,
	problem.Precondition: codes.FailedPrecondition,
	problem.Aborted:      codes.Aborted,
	problem.Exhausted:    codes.ResourceExhausted,
	problem.Unavailable:  codes.Unavailable,
	problem.Unknown:      codes.Unknown,
	problem.Canceled:     codes.Canceled,
	problem.Deadline:     codes.DeadlineExceeded,
	problem.Denied:       codes.PermissionDenied,

	problem.Unauthenticated: codes.Unauthenticated,
}

// Code is the one place where a kind of error becomes a code.
func Code(k problem.Kind) codes.Code {
	if c, ok := kindCodes[k]; ok {
		return c
	}
	return codes.Internal
}

// BadStream says that a stream's frames are out of order. It ends the stream.
func BadStream(field, format string, args ...any) *problem.Error {
	return wire.Invalid("BAD_STREAM", field, format, args...)
}

// Draining says that the node goes away; another one, or the same one after its
// restart, takes the call.
func Draining() *problem.Error {
	return &problem.Error{Kind: problem.Unavailable, Reason: "DRAINING", Message: "node is draining"}
}

// Stalled says that the client does not read its stream.
func Stalled() error {
	return &problem.Error{
		Kind:    problem.Unavailable,
		Reason:  "STREAM_STALLED",
		Message: "the client does not read its stream",
	}
}

// Classify turns any error into one that has a kind.
func Classify(err error) *problem.Error {
	var known *problem.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled):
		return &problem.Error{Kind: problem.Canceled, Message: "call was canceled"}
	case errors.Is(err, context.DeadlineExceeded):
		return &problem.Error{Kind: problem.Deadline, Message: "deadline exceeded"}
	}
	return &problem.Error{Kind: problem.Internal, Message: err.Error()}
}

// madeByLibrary reports whether err is a status that the gRPC library made, such
// as that of a broken stream.
func madeByLibrary(err error) bool {
	var ours *problem.Error
	if errors.As(err, &ours) {
		return false
	}
	_, ok := grpcstatus.FromError(err)
	return ok
}

// metadataOf says what is known of the task in question.
func metadataOf(e *problem.Error) map[string]string {
	known := make(map[string]string)
	if e.State != store.StateUnknown || e.ID != "" {
		known["state"] = e.State.String()
	}
	if e.ID != "" {
		known["id"] = wire.Text(e.ID)
	}
	if e.Version != 0 {
		known["version"] = strconv.FormatInt(e.Version, 10)
	}
	if len(known) == 0 {
		return nil
	}
	return known
}

// Of turns what a handler returned into what the caller sees, and tells it the id of the
// request in the trailer. Internal errors go to log under a number, and only the number to
// the caller.
func Of(ctx context.Context, log *slog.Logger, method string, err error) error {
	id, err := requestid.Split(ctx, err)
	_ = grpc.SetTrailer(ctx, metadata.Pairs(requestid.Key, id)) // a call within the process has none
	if madeByLibrary(err) {
		return err
	}
	e := Classify(err)
	info := &errdetails.ErrorInfo{Reason: e.Reason, Domain: domain}
	if Code(e.Kind) == codes.Internal {
		incident := uuid.NewString()
		log.ErrorContext(ctx, "call failed", "method", method, "request", id, "incident", incident, "err", err)
		info.Reason, info.Metadata = "INTERNAL", map[string]string{"incident": incident}
		return withDetails(codes.Internal, "internal error, incident "+incident, info)
	}
	details := []protoadapt.MessageV1{info}
	info.Metadata = metadataOf(e)
	if e.Field != "" {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: e.Field, Description: wire.Text(e.Message), Reason: e.Reason},
		}})
	}
	if pause := pauseOf(e); pause > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(pause)})
	}
	if e.Reason == "" {
		details = details[1:] // canceled or late: the code says it all
	}
	return withDetails(Code(e.Kind), wire.Text(e.Message), details...)
}

func withDetails(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	st := grpcstatus.New(code, message)
	if with, err := st.WithDetails(details...); err == nil {
		st = with
	}
	return st.Err()
}

// pauseOf is the pause before the call may be repeated; 0 when it should not be.
func pauseOf(e *problem.Error) time.Duration {
	if e.RetryAfter == 0 && (e.Kind == problem.Unavailable || e.Kind == problem.Exhausted) {
		return retryAfter
	}
	return max(e.RetryAfter, 0)
}

// Item is Of for one item of a batch.
func Item(log *slog.Logger, e *problem.Error) *ddqv1.Error {
	if e == nil {
		return nil
	}
	code := Code(e.Kind)
	if code == codes.Internal {
		log.Error("item failed", "err", e)
		return &ddqv1.Error{Code: int32(code), Reason: "INTERNAL", Message: "internal error"}
	}
	return &ddqv1.Error{
		Code:         int32(code),
		Reason:       e.Reason,
		Message:      wire.Text(e.Message),
		Field:        e.Field,
		RetryAfterMs: store.CeilMillis(pauseOf(e)),
		State:        wire.State(e.State),
		Id:           wire.Text(e.ID),
	}
}
