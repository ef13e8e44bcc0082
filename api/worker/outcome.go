package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// Why a handler's context ended, as context.Cause reports it.
var (
	// ErrHoldLost: the task is no longer this worker's; the outcome is ignored.
	ErrHoldLost = errors.New("hold lost")
	// ErrCanceled: someone asked for the running task to be cancelled.
	ErrCanceled = errors.New("task cancelled")
	// ErrHandlerTimeout: the handler ran for Task.HandlerTimeout, or Config.HandlerTimeout. An error returned
	// after that fails the attempt.
	ErrHandlerTimeout = errors.New("handler timed out")
	// ErrStopped: the worker stops and its grace period is over. An error
	// returned after that releases the task, without spending the attempt.
	ErrStopped = errors.New("worker stopped")
	// ErrReleased: what Release returns is it, for middleware.
	ErrReleased = errors.New("released by the handler")
)

// Permanent returns err as one that no further attempt can mend: the task goes
// to the dead letters at once.
func Permanent(err error) error {
	return &verdict{err: orElse(err, "permanent failure"), permanent: true}
}

// RetryAfter returns err as a failure after which the next attempt is due in
// d, whatever the backoff says. The attempt stays counted.
func RetryAfter(d time.Duration, err error) error {
	return &verdict{err: orElse(err, "retry asked for"), delay: &d}
}

// Release gives the task back unharmed, due again in d. The attempt is not
// counted.
func Release(d time.Duration) error {
	return &verdict{err: ErrReleased, delay: &d, release: true}
}

// verdict is an error that says what is to become of the task. It may be wrapped.
type verdict struct {
	err       error
	delay     *time.Duration // nil leaves it to the backoff
	permanent bool
	release   bool
	suspend   *ddqv1.Growth // it is an ack, with this; nil: it is none
}

func (v *verdict) Error() string { return v.err.Error() }
func (v *verdict) Unwrap() error { return v.err }

func orElse(err error, text string) error {
	if err == nil {
		return errors.New(text)
	}
	return err
}

// panicked is what a handler's panic becomes.
type panicked struct {
	value any
	place string // file:line
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v at %s", p.value, p.place) }

// nackOf returns how err, returned under ctx, is told to the server.
func nackOf(ctx context.Context, err error) *ddqv1.Nack {
	nack := &ddqv1.Nack{Error: shorten(fmt.Sprint(err))} // Sprint: also of an error whose text panics
	var v *verdict
	switch {
	case errors.As(err, &v):
		nack.Permanent, nack.Release = v.permanent, v.release
		if v.delay != nil {
			nack.DelayMs = new(millis(*v.delay))
		}
	case errors.Is(context.Cause(ctx), ErrStopped):
		nack.Release = true
	case errors.Is(context.Cause(ctx), ErrHandlerTimeout):
		nack.Error = shorten(timeoutText(context.Cause(ctx), err))
	}
	return nack
}

// timeoutText is what a handler that ran into its timeout returned, beside that it did.
func timeoutText(cause, err error) string {
	if errors.Is(err, ErrHandlerTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return cause.Error()
	}
	return fmt.Sprintf("%v: %v", cause, err)
}

// maxError is how much of an error the server keeps.
const maxError = 1024

// shorten makes s fit for the wire.
func shorten(s string) string {
	if len(s) > maxError {
		cut := maxError
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	return strings.ToValidUTF8(s, "?")
}

// millis rounds up.
func millis(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return max(ms, 0)
}
