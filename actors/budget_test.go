package actors_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

const mib = 1 << 20

// slowStream is a stream that takes deliveries and sends them when the test says so.
type slowStream struct {
	servicetest.Stream
	unsent []subscription.Delivery
	seen   map[string]int // deliveries by task
}

func subscribeSlowly(t *testing.T, s *service.Service, o subscription.Options, credit int) *slowStream {
	t.Helper()
	slow := &slowStream{Stream: servicetest.Stream{T: t}, seen: make(map[string]int)}
	o.Topic, o.Worker, o.TellsSent = "t", "slow", true
	sub, err := s.Delivery.Subscribe(t.Context(), o, slow)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	slow.Sub = sub
	if err := sub.Grant(credit); err != nil {
		t.Fatalf("grant: %v", err)
	}
	synctest.Wait()
	return slow
}

// gather takes what came since, and returns the bytes that are not sent.
func (o *slowStream) gather() (bytes int64) {
	for _, d := range o.Take() {
		o.unsent = append(o.unsent, d)
		o.seen[d.Task.ID]++
	}
	for i := range o.unsent {
		bytes += o.unsent[i].Bytes()
	}
	return bytes
}

// send sends what is unsent, and acks it.
func (o *slowStream) send() (n int) {
	for _, d := range o.unsent {
		o.Sub.Sent(d.Bytes())
		o.Settle(subscription.SettleAck, d)
	}
	n, o.unsent = len(o.unsent), nil
	return n
}

// end gives back what is unsent, and takes nothing more.
func (o *slowStream) end() {
	o.Mu.Lock()
	o.Refusing = true
	o.Mu.Unlock()
	o.gather()
	o.Sub.Unsubscribe(o.unsent)
}

// requireAll sends everything and requires each of n tasks to have come once.
func (o *slowStream) requireAll(n int, most int64) {
	o.T.Helper()
	for {
		if got := o.gather(); got > most {
			o.T.Fatalf("%d bytes are unsent, want at most %d", got, most)
		}
		if o.send() == 0 {
			break
		}
	}
	if len(o.seen) != n {
		o.T.Errorf("%d tasks came, want %d", len(o.seen), n)
	}
	for id, times := range o.seen {
		if times != 1 {
			o.T.Errorf("task %s came %d times", id, times)
		}
	}
}

// enqueueLarge enqueues n tasks that are due after a delay.
func enqueueLarge(t *testing.T, s *service.Service, n, payload int, delay time.Duration) {
	t.Helper()
	for i := range n {
		task := servicetest.After("t", fmt.Sprintf("task-%d-%d", payload, i), delay)
		task.Task.Payload = make([]byte, payload)
		servicetest.EnqueueOne(t, s, task)
	}
}

func largePayloads() actors.Config {
	return actors.Config{
		Limits: actors.Limits{Payload: 4 * mib, BatchBytes: 5 * mib},
		Topic:  store.Topic{Visibility: time.Hour},
	}
}

func TestStreamThatIsNotReadCostsABoundedNumberOfBytes(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Second} {
		t.Run(delay.String(), func(t *testing.T) {
			servicetest.Bubble(t, largePayloads(), func(t *testing.T, s *service.Service) {
				slow := subscribeSlowly(t, s, subscription.Options{MaxInFlight: 10_000}, 10_000)
				enqueueLarge(t, s, 40, mib, delay)
				time.Sleep(time.Minute)

				got := slow.gather()
				if got < 8*mib || got > 9*mib+mib/2 {
					t.Errorf("%d bytes are unsent, want about 8 MiB", got)
				}
				status, err := s.Topics.Describe(t.Context(), "t")
				if err != nil {
					t.Fatal(err)
				}
				if held := status.Depth.Running; held != int64(len(slow.unsent)) {
					t.Errorf("%d tasks are held, want the %d that are unsent", held, len(slow.unsent))
				}
				slow.requireAll(40, 9*mib+mib/2)
			})
		})
	}
}

func TestTaskLargerThanTheBudgetGoesAlone(t *testing.T) {
	servicetest.Bubble(t, largePayloads(), func(t *testing.T, s *service.Service) {
		slow := subscribeSlowly(t, s, subscription.Options{MaxBytes: mib}, 100)
		enqueueLarge(t, s, 5, 4*mib, time.Second)
		time.Sleep(time.Minute)
		slow.gather()
		if len(slow.unsent) != 1 {
			t.Errorf("%d tasks are unsent, want 1", len(slow.unsent))
		}
		slow.requireAll(5, 4*mib+actors.BodyOverhead)
	})
}

func TestTasksLargerThanThoseBeforeAreNotAllHeld(t *testing.T) {
	skipLong(t)
	servicetest.Bubble(t, largePayloads(), func(t *testing.T, s *service.Service) {
		slow := subscribeSlowly(t, s, subscription.Options{MaxInFlight: 10_000}, 10_000)
		enqueueLarge(t, s, 500, 100, time.Second)
		time.Sleep(2 * time.Second)
		slow.gather()
		slow.send()
		enqueueLarge(t, s, 200, mib, time.Second)
		s.Node().OnlyTopic().SetMeanBody(356) // as if another node had added them
		time.Sleep(time.Minute)

		most := int64(8*mib + 4*4*(store.MaxBodies+mib)) // a Hold of each shard, four at a time
		if got := slow.gather(); got > most {
			t.Errorf("%d bytes are unsent, want at most %d", got, most)
		}
		other := servicetest.Subscribe(t, s, "t", 10) // what there is no room for is not kept from others
		if n := len(other.Take()); n != 10 {
			t.Errorf("another worker got %d tasks, want 10", n)
		}
		slow.requireAll(690, most)
	})
}

func TestManyStreamsThatAreNotReadLeaveRoomForOthers(t *testing.T) {
	cfg := largePayloads()
	cfg.UnsentBytes = 16 * mib
	servicetest.Bubble(t, cfg, func(t *testing.T, s *service.Service) {
		var slow []*slowStream
		for range 8 {
			slow = append(slow, subscribeSlowly(t, s, subscription.Options{}, 1000))
		}
		enqueueLarge(t, s, 80, mib, time.Second)
		time.Sleep(time.Minute)
		total := int64(0)
		for _, o := range slow {
			total += o.gather()
			if len(o.unsent) == 0 {
				t.Errorf("a stream got nothing")
			}
		}
		if most := int64(24*mib + mib); total > most { // one task beyond for each
			t.Errorf("%d bytes are unsent, want at most %d", total, most)
		}

		reader := servicetest.Subscribe(t, s, "t", 1000)
		rest := 80
		for _, o := range slow {
			rest -= len(o.unsent)
		}
		if got := len(reader.Take()); got != rest {
			t.Errorf("the worker that reads got %d tasks, want the other %d", got, rest)
		}
		for _, o := range slow {
			o.end()
			synctest.Wait() // what went back goes to any of the others, also to those that end next
		}
		if left := s.Node().Unsent(); left != 0 {
			t.Errorf("%d bytes are counted after all is over", left)
		}
		if got := len(reader.Take()); got != 80-rest {
			t.Errorf("the worker that reads got %d tasks that were given back, want %d", got, 80-rest)
		}
	})
}

func TestStreamThatEndsLeavesNoBytes(t *testing.T) {
	servicetest.Bubble(t, largePayloads(), func(t *testing.T, s *service.Service) {
		slow := subscribeSlowly(t, s, subscription.Options{}, 100)
		enqueueLarge(t, s, 20, mib, 0)
		slow.gather()
		if s.Node().Unsent() == 0 {
			t.Fatal("nothing is counted")
		}
		slow.Sub.Unsubscribe(slow.unsent)
		synctest.Wait()
		if left := s.Node().Unsent(); left != 0 {
			t.Errorf("%d bytes are counted, want 0", left)
		}
		if got := len(servicetest.Subscribe(t, s, "t", 100).Take()); got != 20 {
			t.Errorf("the next worker got %d tasks, want 20", got)
		}
	})
}

func TestPollTakesNoMoreThanItsBytes(t *testing.T) {
	servicetest.Bubble(t, largePayloads(), func(t *testing.T, s *service.Service) {
		enqueueLarge(t, s, 20, mib, 0)
		got, err := s.Delivery.Retrieve(t.Context(), subscription.Options{Topic: "t", MaxBytes: 2 * mib}, 100, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 || len(got) > 3 {
			t.Errorf("got %d tasks of 1 MiB, want 2", len(got))
		}
		synctest.Wait()
		if left := s.Node().Unsent(); left != 0 {
			t.Errorf("%d bytes are counted after the poll", left)
		}
	})
}
