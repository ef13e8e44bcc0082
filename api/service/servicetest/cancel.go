package servicetest

import (
	"testing/synctest"

	"github.com/ddq-io/ddq/actors"
)

func (o *Stream) TakeCancels() []actors.CancelAsk {
	synctest.Wait()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	got := o.cancels
	o.cancels = nil
	return got
}
