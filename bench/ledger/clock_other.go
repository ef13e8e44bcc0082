//go:build !unix

package ledger

import "time"

// monotonic falls back to the time of day, where there is no clock that all
// processes share.
func monotonic() int64 { return time.Now().UnixNano() }
