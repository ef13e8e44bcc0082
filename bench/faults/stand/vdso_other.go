//go:build !linux || !amd64

package stand

import (
	"time"

	"github.com/ddq-io/ddq/bench/box"
)

// shiftProcess is not possible here.
func shiftProcess(*box.Process, time.Duration) error { return ErrPrivilege }
