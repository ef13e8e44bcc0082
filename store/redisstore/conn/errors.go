package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ddq-io/ddq/store"
)

// refusals are the beginnings of replies with which Redis refuses a command
// before it has any effect, for a reason that lies in the server and may pass.
var refusals = []string{
	"LOADING", "READONLY", "MISCONF", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY",
	"NOAUTH", "WRONGPASS", "NOPERM", "ERR max number of clients", "MOVED", "ASK",
}

// ErrReply is a reply that no script gives.
var ErrReply = errors.New("reply of another shape than expected")

// WriteError translates the error of a call that may have changed something.
func WriteError(what string, err error) error {
	return fmt.Errorf("%s: %w", what, translate(err, store.ErrUnknown))
}

// ReadError translates the error of a call that changes nothing.
func ReadError(what string, err error) error {
	return fmt.Errorf("%s: %w", what, translate(err, store.ErrUnavailable))
}

// translate is the only place where an error of the client becomes one of the
// contract. lost is what it means that the answer did not arrive.
func translate(err, lost error) error {
	var reply redis.Error
	var op *net.OpError
	var unsent *unsentError
	var wrong *wrongTypeError
	switch {
	case isContractError(err):
		return err
	case errors.Is(err, redis.ErrClosed):
		return store.ErrClosed
	case errors.As(err, &unsent) && errors.Is(err, redis.Nil):
		return fmt.Errorf("%w: no sentinel knows a primary of that name", store.ErrUnavailable)
	case errors.As(err, &unsent):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case errors.As(err, &wrong):
		return fmt.Errorf("redis: %w", wrong)
	case errors.As(err, &reply):
		return translateReply(reply)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted),
		errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", lost, err)
}

// translateReply translates an error that the server answered with. Scripts
// check everything before their first write, so nothing was done.
func translateReply(reply redis.Error) error {
	if strings.HasPrefix(reply.Error(), "OOM") {
		return fmt.Errorf("%w: %w", store.ErrFull, reply)
	}
	for _, prefix := range refusals {
		if strings.HasPrefix(reply.Error(), prefix) {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, reply)
		}
	}
	return fmt.Errorf("redis: %w", reply)
}

func isContractError(err error) bool {
	for _, e := range []error{
		store.ErrFenced, store.ErrSealed, store.ErrUnknown, store.ErrUnavailable, store.ErrFull, store.ErrClosed,
		store.ErrOwned, store.ErrSessionLost, store.ErrAnotherServer, store.ErrReceipt, store.ErrBadCursor, ErrReply,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// AfterPart is what an error means when the first scripts of a call have run.
func AfterPart(err error) error {
	if errors.Is(err, store.ErrFenced) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: part of the batch was done: %w", store.ErrUnknown, err)
	}
	return fmt.Errorf("%w: part of the batch was done: %s", store.ErrUnknown, err.Error()) // not wrapped: it may say that nothing was done
}
