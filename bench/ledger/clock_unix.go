//go:build unix

package ledger

import "golang.org/x/sys/unix"

// monotonic reads the clock that all processes of this machine share and nobody
// sets, in nanoseconds.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // the kernel has had this clock for twenty years
	}
	return t.Nano()
}
