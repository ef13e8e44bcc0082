package servicetest

import (
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
)

func (o *Stream) Deliver(d []subscription.Delivery) bool {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	if o.Refusing {
		return false
	}
	for range d {
		o.At = append(o.At, time.Now())
	}
	o.Got = append(o.Got, d...)
	return true
}

func (o *Stream) Settled(_ uint64, results []subscription.Settled) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	o.settled = append(o.settled, results...)
}

func (o *Stream) Demand(int, int) {}

func (o *Stream) NodesChanged() {}

func (o *Stream) Cancel(asks []subscription.CancelAsk) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	o.cancels = append(o.cancels, asks...)
}

func (o *Stream) Drain(time.Duration) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	o.Drained++
}

// Take returns what came since the last take, once the system is quiet.
func (o *Stream) Take() []subscription.Delivery {
	synctest.Wait()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	got := o.Got
	o.Got = nil
	return got
}

func (o *Stream) TakeOne() subscription.Delivery {
	o.T.Helper()
	got := o.Take()
	if len(got) != 1 {
		o.T.Fatalf("got %d deliveries, want 1", len(got))
	}
	return got[0]
}

func (o *Stream) TakeSettled() []subscription.Settled {
	synctest.Wait()
	o.Mu.Lock()
	defer o.Mu.Unlock()
	got := o.settled
	o.settled = nil
	return got
}

func (o *Stream) Settle(kind subscription.SettleKind, d subscription.Delivery) {
	o.Sub.Settle(1, []subscription.Settlement{{Kind: kind, ID: d.Task.ID, Token: d.Token}})
}
