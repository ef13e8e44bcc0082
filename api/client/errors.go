package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/api/client/internal/conn"
	"github.com/ddq-io/ddq/api/client/internal/sender"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// What went wrong, by what a caller can do about it. Match with errors.Is.
var (
	// ErrInvalid: the request can never succeed; Error.Field names the fault.
	ErrInvalid = errors.New("invalid request")
	// ErrOutOfRange: beyond a limit of the topic, such as its farthest due time.
	ErrOutOfRange = errors.New("out of range")
	// ErrNotFound: no such task or topic.
	ErrNotFound = errors.New("not found")
	// ErrExists: the id or name is taken by something else.
	ErrExists = errors.New("exists already")
	// ErrPrecondition: not possible in the state that the task or topic is in.
	ErrPrecondition = errors.New("not possible in this state")
	// ErrVersion: it was changed since it was read; Error.Version is the one that a
	// task has now.
	ErrVersion = errors.New("changed meanwhile")
	// ErrHoldLost: the hold ran out or was replaced; nothing was changed.
	ErrHoldLost = errors.New("hold lost")
	// ErrExhausted: paused, over a quota or too large; perhaps later.
	ErrExhausted = errors.New("exhausted")
	// ErrUnavailable: the server or its store could not be reached, or refuses
	// for now.
	ErrUnavailable = errors.New("unavailable")
	// ErrUnknown: the answer was lost, and the request may have taken effect.
	// Repeating an enqueue with the same id is safe.
	ErrUnknown = errors.New("outcome unknown")
	// ErrDenied: missing or insufficient credentials.
	ErrDenied = errors.New("denied")
	// ErrInternal: a fault of the server; its log has the details.
	ErrInternal = errors.New("internal error")
	// ErrCursorExpired: what comes behind the cursor of a Watch is not kept any more.
	ErrCursorExpired = errors.New("cursor expired")
	// ErrClosed: the client was closed.
	ErrClosed = sender.ErrClosed
)

// Error is what the server, or the way to it, answered instead of a result.
// It matches the sentinels above, and context.DeadlineExceeded and
// context.Canceled, with errors.Is.
type Error struct {
	Code       codes.Code
	Reason     string        // stable, upper snake case, such as BAD_NAME; may be empty
	Field      string        // the request field at fault; may be empty
	Message    string        // for people
	RetryAfter time.Duration // when to repeat the call; 0 when it should not be
	Version    int64         // ErrVersion: of the task
	ID         string        // KEY_TAKEN: of the task that has the idempotency key

	// RequestID finds the call in the server's log and in its audit log. It is empty when no server
	// answered, of one task of a batch, and from a server of before.
	RequestID string

	cause error
	doing string // what nobody answered, and where; may be empty
	final bool   // Unknown, and repeating it tells no more
}

func (e *Error) Error() string {
	text := e.Message
	if e.doing != "" {
		text = e.doing + ": " + text
	}
	if strings.Contains(text, "while dialing") {
		text += "; is a ddq server running there?"
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}

// unanswered adds what was asked for, and where, to the error of a call that no server
// answered. Others speak for themselves.
func (c *caller) unanswered(err error, what string) error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) || e.Reason != "" || e.Code != codes.Unavailable && e.Code != codes.DeadlineExceeded && e.Code != codes.Unknown {
		return err
	}
	given := *e
	given.doing = what
	if c.addr != "" {
		given.doing += " at " + c.addr
	}
	return &given
}

// Unwrap returns the gRPC status error or context error behind e, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is the sentinel for e.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrHoldLost:
		return e.Reason == "HOLD_LOST"
	case ErrCursorExpired:
		return e.Reason == "CURSOR_EXPIRED"
	}
	return target == cmp.Or(sentinels[e.Code], ErrInternal)
}

// sentinels are those of codes. Any other code is ErrInternal.
var sentinels = map[codes.Code]error{
	codes.InvalidArgument:    ErrInvalid,
	codes.OutOfRange:         ErrOutOfRange,
	codes.NotFound:           ErrNotFound,
	codes.AlreadyExists:      ErrExists,
	codes.FailedPrecondition: ErrPrecondition,
	codes.Aborted:            ErrVersion,
	codes.ResourceExhausted:  ErrExhausted,
	codes.Unavailable:        ErrUnavailable,
	codes.Unknown:            ErrUnknown,
	codes.PermissionDenied:   ErrDenied,
	codes.Unauthenticated:    ErrDenied,
	codes.DeadlineExceeded:   context.DeadlineExceeded,
	codes.Canceled:           context.Canceled,
}

// repeatable reports whether the call that failed with e may be made again.
// What the server refused with a time to come back may always be; what may
// have taken effect only when doing it twice is the same as once.
func (e *Error) repeatable(idempotent bool) bool {
	if e.RetryAfter > 0 {
		return true
	}
	return idempotent && !e.final && (e.Code == codes.Unavailable || e.Code == codes.Unknown)
}

// until returns e as the outcome of a call that was repeated until end, the
// error of its context. It matches end, too.
func (e *Error) until(end error) *Error {
	if errors.Is(e, end) {
		return e
	}
	given := *e
	given.Message = fmt.Sprintf("%s; repeated until %v", e.Message, end)
	given.cause = errors.Join(e.cause, end)
	return &given
}

// fromRPC returns the Error in the error of a gRPC call, nil for nil.
func fromRPC(err error) *Error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	e := &Error{Code: st.Code(), Message: st.Message(), cause: err}
	if f := (*conn.Failure)(nil); errors.As(err, &f) {
		e.RequestID = f.Request
	}
	if l := (*sender.Lost)(nil); errors.As(err, &l) {
		of := failed(l.Of) // whose sentinel the error matches, too
		e.Reason, e.RetryAfter, e.final, e.cause = of.Reason, of.RetryAfter, l.Refused && !of.repeatable(true), of
		return e
	}
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			e.Reason, e.ID = d.GetReason(), d.GetMetadata()["id"]
			e.Version, _ = strconv.ParseInt(d.GetMetadata()["version"], 10, 64) // 0 where there is none
		case *errdetails.RetryInfo:
			e.RetryAfter = d.GetRetryDelay().AsDuration()
		case *errdetails.BadRequest:
			if v := d.GetFieldViolations(); len(v) > 0 {
				e.Field = v[0].GetField()
			}
		}
	}
	return e
}

// fromItem returns the Error of one item of a batch, nil for nil.
func fromItem(p *ddqv1.Error) *Error {
	if p == nil {
		return nil
	}
	return &Error{
		Code: codes.Code(p.GetCode()), Reason: p.GetReason(), Field: p.GetField(), ID: p.GetId(), Message: p.GetMessage(),
		RetryAfter: time.Duration(p.GetRetryAfterMs()) * time.Millisecond,
	}
}

// fromContext returns the Error for a call given up by its caller or deadline.
func fromContext(err error) *Error {
	return fromRPC(status.FromContextError(err).Err())
}

func invalid(field, message string) *Error {
	return &Error{Code: codes.InvalidArgument, Reason: "BAD_REQUEST", Field: field, Message: message}
}

// plain turns a nil *Error into a nil error.
func plain(e *Error) error {
	if e == nil {
		return nil
	}
	return e
}
