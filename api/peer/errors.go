package peer

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ddq-io/ddq/actors"
)

var (
	errClosed   = errors.New("this node stops")
	errDraining = errors.New("the other node goes away")
	errDropped  = errors.New("notices were dropped")
	errSilent   = errors.New("the other node does not answer")
)

// unreachable is what a caller is told when a node did not do what was asked.
func unreachable(to actors.Member, err error) error {
	switch status.Code(err) {
	case codes.OK:
		if err == nil {
			return nil
		}
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.FailedPrecondition:
		return &actors.Error{Kind: actors.Precondition, Reason: "NODE_REFUSED", Message: status.Convert(err).Message()}
	}
	return &actors.Error{
		Kind:       actors.Unavailable,
		Reason:     "NODE_UNREACHABLE",
		Field:      "name",
		Message:    "node " + to.Name + " cannot be reached: " + status.Convert(err).Message(),
		RetryAfter: time.Second,
	}
}
