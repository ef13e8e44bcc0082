package service_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// acker settles and grants whatever it is given at once.
type acker struct {
	sub  atomic.Pointer[service.Subscription]
	left atomic.Int64
	done chan struct{}
}

func (o *acker) Cancel([]subscription.CancelAsk) {}

func (o *acker) Deliver(d []subscription.Delivery) bool {
	acks := make([]subscription.Settlement, len(d))
	for i := range d {
		acks[i] = subscription.Settlement{Kind: subscription.SettleAck, ID: d[i].Task.ID, Token: d[i].Token}
	}
	sub := o.sub.Load()
	sub.Settle(0, acks)
	sub.Grant(len(d))
	return true
}

func (o *acker) Settled(_ uint64, results []subscription.Settled) {
	if o.left.Add(-int64(len(results))) == 0 {
		close(o.done)
	}
}

func (o *acker) Drain(time.Duration) {}

func (o *acker) Demand(int, int) {}
func (o *acker) NodesChanged()   {}

// BenchmarkLifeCycle runs tasks through enqueue, delivery and ack, without a wire
// and on the in-memory store: what is left is the runtime.
func BenchmarkLifeCycle(b *testing.B) {
	for _, batch := range []int{1, 16, 512} {
		for _, delay := range []time.Duration{0, 20 * time.Millisecond} {
			b.Run(fmt.Sprintf("batch=%d/delay=%v", batch, delay), func(b *testing.B) { benchLifeCycle(b, batch, delay) })
		}
	}
}

func benchLifeCycle(b *testing.B, batch int, delay time.Duration) {
	s, begin := servicetest.New(actors.Config{}, memstore.New())
	if err := begin(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer s.Node().Stop(context.Background())
	o := &acker{done: make(chan struct{})}
	o.left.Store(int64(b.N))
	sub, err := s.Delivery.Subscribe(b.Context(), subscription.Options{Topic: "t", MaxInFlight: 10_000}, o)
	if err != nil {
		b.Fatal(err)
	}
	o.sub.Store(sub)
	sub.Grant(10_000)
	payload := make([]byte, 200)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		tasks := make([]service.NewTask, 0, batch)
		for ; len(tasks) < batch && n < b.N; n++ {
			tasks = append(tasks, service.NewTask{Topic: "t", Task: store.Task{Payload: payload, MaxRetries: -1}, When: service.When{Delay: delay}})
		}
		if _, err := s.Tasks.Enqueue(b.Context(), tasks); err != nil {
			b.Fatal(err)
		}
	}
	<-o.done
}
