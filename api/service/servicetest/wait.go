package servicetest

import (
	"github.com/ddq-io/ddq/actors/subscription"
)

// SettleWith asks for one settlement and checks that it went well.
func (o *Stream) SettleWith(a subscription.Settlement, d subscription.Delivery) subscription.Settled {
	o.T.Helper()
	a.ID, a.Token = d.Task.ID, d.Token
	o.Sub.Settle(1, []subscription.Settlement{a})
	r := o.TakeSettled()
	if len(r) != 1 || r[0].Err != nil {
		o.T.Fatalf("settle: %+v", r)
	}
	return r[0]
}
