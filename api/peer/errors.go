package peer

import (
	"context"
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/problem"
)

var (
	errClosed   = errors.New("this node stops")
	errDraining = errors.New("the other node goes away")
	errDropped  = errors.New("notices were dropped")
	errSilent   = errors.New("the other node does not answer")
)

// refusals are the codes that say that repeating a call would not help.
var refusals = map[codes.Code]problem.Kind{
	codes.InvalidArgument:    problem.Invalid,
	codes.OutOfRange:         problem.OutOfRange,
	codes.NotFound:           problem.NotFound,
	codes.AlreadyExists:      problem.Exists,
	codes.FailedPrecondition: problem.Precondition,
	codes.Unimplemented:      problem.Precondition, // an older version
}

// failureOf is what a caller is told when a node did not do what was asked: its
// own words when it refused, and to come back when it could not.
func failureOf(to fleet.Member, err error) error {
	code := status.Code(err)
	switch {
	case err == nil:
		return nil
	case code == codes.Canceled:
		return context.Canceled
	case code == codes.DeadlineExceeded:
		return context.DeadlineExceeded
	}
	e := &problem.Error{Message: "node " + to.Name + ": " + status.Convert(err).Message()}
	kind, refused := refusals[code]
	if refused {
		e.Kind, e.Reason = kind, "NODE_REFUSED"
	} else {
		e.Kind, e.Reason, e.Field, e.RetryAfter = problem.Unavailable, "NODE_UNREACHABLE", "name", time.Second
	}
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if refused {
				e.Reason = d.Reason
			}
		case *errdetails.BadRequest:
			if v := d.GetFieldViolations(); refused && len(v) > 0 {
				e.Field = v[0].GetField()
			}
		case *errdetails.RetryInfo:
			e.RetryAfter = d.GetRetryDelay().AsDuration()
		}
	}
	return e
}
