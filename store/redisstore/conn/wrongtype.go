package conn

import "fmt"

// wrongTypeError is the refusal of a command because a key is of another type than it
// should be. Redis says neither which key nor which type.
type wrongTypeError struct {
	key, is, want string
	reply         error
}

func (e *wrongTypeError) Error() string {
	return fmt.Sprintf("key %q is a %s where ddq has a %s: %v", e.key, e.is, e.want, e.reply)
}

func (e *wrongTypeError) Unwrap() error { return e.reply }
