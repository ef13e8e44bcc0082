package node

import (
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// ConfigError is a setting that cannot work, or settings that do not go together.
type ConfigError struct{ error }

func (e ConfigError) Unwrap() error { return e.error }

func wrongf(format string, args ...any) error {
	return ConfigError{fmt.Errorf(format, args...)}
}

// InUse reports whether err says that another process has the data directory.
func InUse(err error) bool { return errors.Is(err, store.ErrLocked) }

// startError is a reason not to start that is meant for people. fx wraps what
// constructors return in a description of the graph, which is not.
type startError struct{ error }

func (e startError) Unwrap() error { return e.error }

// plainError digs the reason out of an error of fx.
func plainError(err error) error {
	var start startError
	if errors.As(err, &start) {
		return start.error
	}
	return err
}
