//go:build !linux || !amd64

package stand

import (
	"time"

	"github.com/ddq-io/ddq/bench"
)

// shiftProcess is not possible here.
func shiftProcess(*bench.Process, time.Duration) error { return ErrPrivilege }
