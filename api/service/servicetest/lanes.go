package servicetest

import (
	"github.com/ddq-io/ddq/actors/subscription"
)

// Ids acks what was delivered and returns its ids.
func (o *Stream) Ids() (Ids []string) {
	for _, d := range o.Take() {
		Ids = append(Ids, d.Task.ID)
		o.Settle(subscription.SettleAck, d)
	}
	return Ids
}
