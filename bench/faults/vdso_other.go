//go:build !linux || !amd64

package faults

import (
	"time"

	"github.com/ddq-io/ddq/bench"
)

// shiftClock is not possible here.
func shiftClock(*bench.Process, time.Duration) error { return ErrPrivilege }
