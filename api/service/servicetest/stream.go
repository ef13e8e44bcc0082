package servicetest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/store"
)

// Stream is a worker's stream as a test sees it.
type Stream struct {
	T   *testing.T
	Sub *service.Subscription

	Mu       sync.Mutex
	Got      []subscription.Delivery
	At       []time.Time
	settled  []subscription.Settled
	cancels  []subscription.CancelAsk
	Drained  int
	Refusing bool
}

// Subscribe opens a stream with credit; the test ends it.
func Subscribe(t *testing.T, s *service.Service, topic string, credit int) *Stream {
	t.Helper()
	return SubscribeWith(t, s, subscription.Options{Topic: topic, Worker: "w"}, credit)
}

// SubscribeWith is Subscribe with other options.
func SubscribeWith(t *testing.T, s *service.Service, options subscription.Options, credit int) *Stream {
	t.Helper()
	o := &Stream{T: t}
	sub, err := s.Delivery.Subscribe(t.Context(), options, o)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	o.Sub = sub
	if credit > 0 {
		if err := sub.Grant(credit); err != nil {
			t.Fatalf("grant: %v", err)
		}
	}
	synctest.Wait()
	return o
}

// EnqueueOne enqueues a task, and fails the test when it is refused.
func EnqueueOne(t *testing.T, s *service.Service, task service.NewTask) service.Enqueued {
	t.Helper()
	if task.Task.MaxRetries == 0 {
		task.Task.MaxRetries = -1
	}
	out, err := s.Tasks.Enqueue(t.Context(), []service.NewTask{task})
	if err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	return out[0]
}

// After is a task that is due after a delay.
func After(topic, id string, delay time.Duration) service.NewTask {
	return service.NewTask{Topic: topic, Task: store.Task{ID: id, Payload: []byte(id)}, When: service.When{Delay: delay}}
}

// InLine is a task of an ordering key, due after a delay; its payload names it.
func InLine(key, name string, delay time.Duration) service.NewTask {
	t := After("mail", "", delay)
	t.Task.Payload, t.Task.MaxRetries = []byte(name), -1
	t.Task.Traits = &store.Traits{OrderingKey: key}
	return t
}
