package servicetest

import (
	"github.com/ddq-io/ddq/actors"
)

// SettleWith asks for one settlement and checks that it went well.
func (o *Stream) SettleWith(a actors.Settlement, d actors.Delivery) actors.Settled {
	o.T.Helper()
	a.ID, a.Token = d.Task.ID, d.Token
	o.Sub.Settle(1, []actors.Settlement{a})
	r := o.TakeSettled()
	if len(r) != 1 || r[0].Err != nil {
		o.T.Fatalf("settle: %+v", r)
	}
	return r[0]
}
