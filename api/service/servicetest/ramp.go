package servicetest

import (
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
)

// Rate counts what a stream is handed while time passes, and acks it at once.
func (o *Stream) Rate(d time.Duration) (n int) {
	for range int(d / (10 * time.Millisecond)) {
		time.Sleep(10 * time.Millisecond)
		got := o.Take()
		for i := range got {
			o.Settle(subscription.SettleAck, got[i])
		}
		if n += len(got); len(got) > 0 {
			o.Sub.Grant(len(got))
		}
	}
	return n
}
