package tenants_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/tenants"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// two is a fleet of two nodes over one store, on which the namespace acme has quotas.
type two struct {
	*servicetest.Fleet
	a, b   *service.Service
	quotas atomic.Pointer[tenants.Quotas]
}

func fleetOfTwo(t *testing.T, quotas *tenants.Quotas, test func(f *two)) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		pair := &two{Fleet: f, a: f.Nodes["a"].Sys, b: f.Nodes["b"].Sys}
		pair.quotas.Store(quotas)
		of := func(namespace string) *tenants.Quotas {
			if namespace != "acme" {
				return nil
			}
			return pair.quotas.Load()
		}
		pair.a.SetQuotas(of)
		pair.b.SetQuotas(of)
		test(pair)
	})
}

func (f *two) acme() context.Context { return scope.With(f.Context(), "acme") }

// enqueue stores a task for later, and returns why it was refused.
func (f *two) enqueue(at *service.Service, ctx context.Context, topic string, payload int) string {
	f.Helper()
	task := servicetest.After(topic, "", time.Hour)
	task.Task.Payload, task.Task.MaxRetries = make([]byte, payload), -1
	out, err := at.Tasks.Enqueue(ctx, []service.NewTask{task})
	switch {
	case err != nil:
		f.Fatal(err)
	case out[0].Err != nil:
		return out[0].Err.Reason
	}
	return ""
}

// both has both nodes do something so many times, each in turn, and returns how often it was refused, by reason.
func (f *two) both(n int, do func(at *service.Service) string) map[string]int {
	refused := make(map[string]int)
	for range n {
		for _, at := range []*service.Service{f.a, f.b} {
			refused[do(at)]++
		}
	}
	return refused
}

func TestNodesTogetherCreateAsManyTopicsAsANamespaceMayHave(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{MaxTopics: 5}, func(f *two) {
		var mu sync.Mutex
		var all sync.WaitGroup
		refused := make(map[string]int)
		for i := range 20 { // at the same moment
			at := []*service.Service{f.a, f.b}[i%2]
			all.Go(func() {
				reason := f.enqueue(at, f.acme(), fmt.Sprint("acme/t", i), 1)
				mu.Lock()
				defer mu.Unlock()
				refused[reason]++
			})
		}
		all.Wait()
		if refused[""] != 5 || refused["QUOTA"] != 15 {
			f.Errorf("%v, want 5 topics of 20", refused)
		}
		topics, _, err := f.a.Topics.List(f.acme(), 100, "")
		if err != nil || len(topics) != 5 {
			f.Fatalf("%d topics, %v", len(topics), err)
		}
		if reason := f.enqueue(f.b, f.acme(), topics[0].Name, 1); reason != "" {
			f.Errorf("into a topic that is there: %s", reason)
		}
		if reason := f.enqueue(f.a, f.Context(), "other", 1); reason != "" {
			f.Errorf("in another namespace: %s", reason)
		}
		if _, err := f.b.Topics.Create(f.acme(), topics[0].Name, service.TopicChange{}); servicetest.ReasonOf(err) != "QUOTA" && servicetest.ReasonOf(err) != "TOPIC_EXISTS" {
			f.Errorf("one that exists: %v", err)
		}
		if err := f.b.Topics.Delete(f.acme(), topics[0].Name, true); err != nil {
			f.Fatal(err)
		}
		servicetest.Idle(time.Second)
		if _, err := f.b.Topics.Create(f.acme(), "acme/more", service.TopicChange{}); err != nil {
			f.Errorf("in place of one that was deleted: %v", err)
		}
		if _, err := f.a.Topics.Create(f.acme(), "acme/most", service.TopicChange{}); servicetest.ReasonOf(err) != "QUOTA" {
			f.Errorf("the sixth: %v", err)
		}
	})
}

func TestBytesOfANamespaceAreThoseOfAllNodes(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{BytesPerSecond: 1000}, func(f *two) {
		if reason := f.enqueue(f.a, f.acme(), "acme/mail", 1001); reason != "PAYLOAD_TOO_LARGE" {
			f.Errorf("more than a second brings: %q", reason)
		}
		if reason := f.enqueue(f.a, f.acme(), "acme/mail", 1000); reason != "" {
			f.Errorf("what a second brings: %s", reason)
		}
		for range 3 {
			servicetest.Idle(time.Second)
			refused := f.both(8, func(at *service.Service) string { return f.enqueue(at, f.acme(), "acme/mail", 100) })
			if refused[""] != 10 || refused["RATE_LIMITED"] != 6 {
				f.Errorf("%v, want 10 of 16", refused)
			}
		}
		if reason := f.enqueue(f.a, f.acme(), "acme/mail", 0); reason != "" {
			f.Errorf("without a payload: %s", reason)
		}
		if reason := f.enqueue(f.b, f.Context(), "mail", 5000); reason != "" {
			f.Errorf("in another namespace: %s", reason)
		}
	})
}

// Small payloads are paid for ahead; what a node took and did not use is lost.
func TestManySmallPayloadsKeepToTheBytesOfASecond(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{BytesPerSecond: 10_000}, func(f *two) {
		began, stored := time.Now(), 0
		for time.Since(began) < 2*time.Second {
			stored += f.both(1, func(at *service.Service) string { return f.enqueue(at, f.acme(), "acme/mail", 50) })[""]
			time.Sleep(time.Millisecond)
		}
		if bytes := 50 * stored; bytes > 30_000 || bytes < 28_000 {
			f.Errorf("%d bytes in 2 s after a rest, want nearly 30,000 and no more", bytes)
		}
	})
}

func TestWorkerStreamsOfANamespaceAreThoseOfAllNodes(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{MaxStreams: 3}, func(f *two) {
		open := func(at *service.Service, topic, want string) (leave func()) {
			f.Helper()
			leave, err := at.Delivery.OpenStream(f.Context(), topic)
			if servicetest.ReasonOf(err) != want {
				f.Fatalf("a stream of %s: %v, want %q", topic, err, want)
			}
			return leave
		}
		first, second, third := open(f.a, "acme/a", ""), open(f.a, "acme/a", ""), open(f.b, "acme/b", "")
		open(f.a, "acme/a", "QUOTA")
		open(f.b, "acme/c", "QUOTA")
		other := open(f.b, "c", "")
		servicetest.Idle(5 * time.Minute)
		open(f.b, "acme/b", "QUOTA")
		first()
		fourth := open(f.b, "acme/b", "")
		open(f.a, "acme/a", "QUOTA")

		f.Nodes["a"].Store.Freeze(true) // nobody keeps the second
		servicetest.Idle(31 * time.Second)
		fifth := open(f.b, "acme/b", "")
		open(f.b, "acme/b", "QUOTA")
		f.Nodes["a"].Store.Freeze(false)
		servicetest.Idle(11 * time.Second) // it goes on, and counts again: there are four
		fifth()
		open(f.b, "acme/b", "QUOTA")
		for _, leave := range []func(){second, third, fourth, other} {
			leave()
		}
	})
}

func TestStreamsThatAreOlderThanTheQuotaCount(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{}, func(f *two) {
		leave, err := f.a.Delivery.OpenStream(f.Context(), "acme/a")
		if err != nil {
			f.Fatal(err)
		}
		defer leave()
		f.quotas.Store(&tenants.Quotas{MaxStreams: 1})
		servicetest.Idle(11 * time.Second)
		if _, err := f.b.Delivery.OpenStream(f.Context(), "acme/a"); servicetest.ReasonOf(err) != "QUOTA" {
			f.Errorf("the second: %v", err)
		}
	})
}

func TestSchedulesOfANamespaceAreThoseOfAllNodes(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{MaxSchedules: 4}, func(f *two) {
		put := func(at *service.Service, topic, name string) string {
			_, err := at.Schedules.Put(f.acme(), schedules.Definition{Topic: topic, Name: name, Spec: schedule.Spec{
				Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "0 0 1 1 *"}}}, History: schedules.DefaultHistory,
				Template: schedule.Template{Task: store.Task{MaxRetries: -1}},
			}}, nil)
			return servicetest.ReasonOf(err)
		}
		n := 0
		refused := f.both(4, func(at *service.Service) string {
			n++
			return put(at, fmt.Sprint("acme/t", n%3), fmt.Sprint("s", n))
		})
		if refused[""] != 4 || refused["QUOTA"] != 4 {
			f.Errorf("%v, want 4 schedules of 8", refused)
		}
		if reason := put(f.b, "acme/t1", "s1"); reason != "" {
			f.Errorf("one that is there: %s", reason)
		}
		if reason := put(f.b, "t1", "s1"); reason != "" {
			f.Errorf("in another namespace: %s", reason)
		}
		if _, err := f.a.Schedules.Delete(f.acme(), "acme/t1", "s1", schedules.Deletion{}); err != nil {
			f.Fatal(err)
		}
		servicetest.Idle(10 * time.Second)
		if reason := put(f.b, "acme/t5", "more"); reason != "" {
			f.Errorf("in place of one that was deleted: %s", reason)
		}
		if reason := put(f.a, "acme/t5", "most"); reason != "QUOTA" {
			f.Errorf("the fifth: %q", reason)
		}
	})
}
