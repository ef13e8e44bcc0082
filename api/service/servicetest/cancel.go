package servicetest

import (
	"testing/synctest"

	"github.com/ddq-io/ddq/actors/subscription"
)

func (o *Stream) TakeCancels() []subscription.CancelAsk {
	synctest.Wait()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	got := o.cancels
	o.cancels = nil
	return got
}
