package service_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

func TestRampFollowsPauseAndResume(t *testing.T) {
	yes, no := true, false
	const now = store.Millis(1_000_000)
	rising := store.Topic{Resumed: now - 500, Ramp: time.Minute}
	for _, c := range []struct {
		name   string
		topic  store.Topic
		change service.TopicChange
		want   store.Topic
	}{
		{"end of a pause", store.Topic{DeliveryPaused: true}, service.TopicChange{DeliveryPaused: &no, Ramp: time.Minute}, store.Topic{Resumed: now, Ramp: time.Minute}},
		{"end of a pause at once", store.Topic{DeliveryPaused: true}, service.TopicChange{DeliveryPaused: &no}, store.Topic{}},
		{"no pause to end", store.Topic{}, service.TopicChange{DeliveryPaused: &no, Ramp: time.Minute}, store.Topic{}},
		{"the same once more", rising, service.TopicChange{DeliveryPaused: &no, Ramp: time.Minute}, rising},
		{"another length", rising, service.TopicChange{DeliveryPaused: &no, Ramp: time.Hour}, store.Topic{Resumed: now - 500, Ramp: time.Hour}},
		{"enough of it", rising, service.TopicChange{DeliveryPaused: &no}, store.Topic{}},
		{"a pause", rising, service.TopicChange{DeliveryPaused: &yes}, store.Topic{DeliveryPaused: true}},
		{"something else", rising, service.TopicChange{}, rising},
	} {
		got := c.topic
		c.change.RampUp(&got, now)
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A backlog of hours that came all at once would knock over what was just repaired.
func TestResumedDeliveriesRise(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Limits: actors.Limits{BatchTasks: 10_000}}, func(t *testing.T, s *service.Service) {
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{}); err != nil {
			t.Fatal(err)
		}
		w := servicetest.Subscribe(t, s, "mail", 1000)
		paused, running := true, false
		if _, err := s.Topics.Configure(t.Context(), "mail", service.TopicChange{DeliveryPaused: &paused}); err != nil {
			t.Fatal(err)
		}
		tasks := make([]service.NewTask, 10_000)
		for i := range tasks {
			tasks[i] = servicetest.After("mail", "", 0)
			tasks[i].Task.MaxRetries = -1
		}
		if _, err := s.Tasks.Enqueue(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		if n := w.Rate(time.Second); n != 0 {
			t.Fatalf("%d deliveries in a pause", n)
		}
		topic, err := s.Topics.Configure(t.Context(), "mail", service.TopicChange{DeliveryPaused: &running, Ramp: 10 * time.Second})
		if err != nil || topic.Ramp != 10*time.Second || topic.Resumed == 0 {
			t.Fatalf("resume: %+v, %v", topic, err)
		}
		// It may hold 1,000: in the first second at most 10, 20, ... 100 in each tenth.
		last, all := 0, 0
		for second := range 4 {
			n := w.Rate(time.Second)
			if n < last+500 || n > 1000*(second+1) {
				t.Errorf("second %d: %d deliveries after %d in the one before", second, n, last)
			}
			last = n
			all += n
		}
		if _, err := s.Topics.Configure(t.Context(), "mail", service.TopicChange{DeliveryPaused: &running}); err != nil {
			t.Fatal(err)
		}
		if n := w.Rate(100 * time.Millisecond); all+n != 10_000 {
			t.Errorf("%d deliveries and, when the ramp was called off, %d", all, n)
		}
	})
}
