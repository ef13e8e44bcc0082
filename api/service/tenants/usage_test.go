package tenants_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/api/service/tenants"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer/timetable"
)

// used writes down what a namespace has, as a node counts it.
func (f *two) used(at *service.Service, namespace string) string {
	f.Helper()
	u, err := at.Usage(scope.With(f.Context(), namespace))
	if err != nil {
		f.Fatal(err)
	}
	text := fmt.Sprintf("%d pending, %d in flight, %d topics", u.Pending, u.InFlight, u.Topics)
	if u.Schedules != nil {
		text += fmt.Sprintf(", %d schedules", *u.Schedules)
	}
	if u.Streams != nil {
		text += fmt.Sprintf(", %d streams", *u.Streams)
	}
	return text
}

// What is at one node, every node counts, and nothing of another namespace.
func TestTheUseOfQuotasIsThatOfAllNodes(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{MaxSchedules: 5, MaxStreams: 7}, func(f *two) {
		want := func(at *service.Service, namespace, want string) {
			f.Helper()
			if got := f.used(at, namespace); got != want {
				f.Errorf("%s has %s, want %s", namespace, got, want)
			}
		}
		want(f.a, "acme", "0 pending, 0 in flight, 0 topics, 0 schedules, 0 streams")
		for i := range 9 {
			at := []*service.Service{f.a, f.b}[i%2]
			if reason := f.enqueue(at, f.acme(), fmt.Sprint("acme/t", i%3), 1); reason != "" {
				f.Fatal(reason)
			}
		}
		f.enqueue(f.a, f.Context(), "mail", 1)
		for i := range 2 {
			_, err := f.b.Schedules.Put(f.acme(), schedules.Definition{Topic: "acme/t0", Name: fmt.Sprint("s", i), Spec: schedule.Spec{
				Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "0 0 1 1 *"}}}, History: schedules.DefaultHistory,
				Template: schedule.Template{Task: store.Task{MaxRetries: -1}},
			}}, nil)
			if err != nil {
				f.Fatal(err)
			}
		}
		leave, e := f.a.Delivery.OpenStream(f.Context(), "acme/t0")
		if e != nil {
			f.Fatal(e)
		}
		for _, at := range []*service.Service{f.a, f.b} {
			want(at, "acme", "9 pending, 0 in flight, 3 topics, 2 schedules, 1 streams")
		}
		leave()
		want(f.b, "acme", "9 pending, 0 in flight, 3 topics, 2 schedules, 0 streams")
		want(f.b, store.DefaultNamespace, "1 pending, 0 in flight, 1 topics")

		f.due(8, "acme/sms")
		h := f.hire(3, "acme/sms")
		h.work(time.Second, time.Hour)
		want(f.a, "acme", "11 pending, 6 in flight, 4 topics, 2 schedules, 0 streams")
	})
}
