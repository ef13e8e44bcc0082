package envelope

import (
	"errors"
	"fmt"

	"github.com/ddq-io/ddq/api/client"
)

// KeyError says that a payload is encrypted under a key that is not known. It is a
// client.ErrUndecodable.
type KeyError struct{ ID string }

func (e *KeyError) Error() string {
	return fmt.Sprintf("payload is encrypted under key %q, which is not in the keyring", e.ID)
}

// Is reports that no attempt can mend it.
func (*KeyError) Is(target error) bool { return target == client.ErrUndecodable }

// Why a payload does not decode, beside KeyError. Each is a client.ErrUndecodable.
var (
	// ErrPlain: it is not encrypted; see Config.AcceptPlain.
	ErrPlain = undecodable("payload is not encrypted")
	// ErrCorrupt: it was changed, or is that of a task of another topic.
	ErrCorrupt = undecodable("encrypted payload was changed, or is of another topic")
)

func undecodable(text string) error { return &fault{text} }

type fault struct{ text string }

func (f *fault) Error() string { return f.text }

func (*fault) Is(target error) bool { return target == client.ErrUndecodable }

var errSize = errors.New("a key has 32 bytes")
