package actors

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/store"
)

func TestRampFollowsPauseAndResume(t *testing.T) {
	yes, no := true, false
	const now = store.Millis(1_000_000)
	rising := store.Topic{Resumed: now - 500, Ramp: time.Minute}
	for _, c := range []struct {
		name   string
		topic  store.Topic
		change TopicChange
		want   store.Topic
	}{
		{"end of a pause", store.Topic{DeliveryPaused: true}, TopicChange{DeliveryPaused: &no, Ramp: time.Minute}, store.Topic{Resumed: now, Ramp: time.Minute}},
		{"end of a pause at once", store.Topic{DeliveryPaused: true}, TopicChange{DeliveryPaused: &no}, store.Topic{}},
		{"no pause to end", store.Topic{}, TopicChange{DeliveryPaused: &no, Ramp: time.Minute}, store.Topic{}},
		{"the same once more", rising, TopicChange{DeliveryPaused: &no, Ramp: time.Minute}, rising},
		{"another length", rising, TopicChange{DeliveryPaused: &no, Ramp: time.Hour}, store.Topic{Resumed: now - 500, Ramp: time.Hour}},
		{"enough of it", rising, TopicChange{DeliveryPaused: &no}, store.Topic{}},
		{"a pause", rising, TopicChange{DeliveryPaused: &yes}, store.Topic{DeliveryPaused: true}},
		{"something else", rising, TopicChange{}, rising},
	} {
		got, paused := c.topic, c.topic.DeliveryPaused
		set(&got.DeliveryPaused, c.change.DeliveryPaused)
		c.change.rampUp(&got, paused, now)
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestRampShareRisesToAll(t *testing.T) {
	topic := store.Topic{Resumed: 1000, Ramp: 10 * time.Second}
	for now, want := range map[store.Millis]float64{0: 0, 1000: 0, 2000: 0.1, 6000: 0.5, 10_999: 0.9999, 11_000: 1, 99_000: 1} {
		if got := rampShare(&topic, now); got != want {
			t.Errorf("at %d: got %v, want %v", now, got, want)
		}
	}
	if got := rampShare(&store.Topic{}, 5); got != 1 {
		t.Errorf("without a ramp: got %v", got)
	}
}

func TestRampPaceLeavesOutWhatIsHeld(t *testing.T) {
	for _, c := range []struct {
		share                     float64
		capacity, inFlight, nodes int
		want                      int
	}{
		{0, 1000, 0, 1, 0}, {0.001, 100, 0, 1, 1}, {0.25, 100, 0, 1, 25}, {0.25, 100, 20, 1, 5},
		{0.25, 100, 30, 1, 0}, {0.5, 100, 0, 4, 13}, {0.5, 0, 0, 2, 0},
	} {
		if got := rampPace(c.share, c.capacity, c.inFlight, c.nodes); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// rate counts what a stream is handed while time passes, and acks it at once.
func (o *stream) rate(d time.Duration) (n int) {
	for range int(d / (10 * time.Millisecond)) {
		time.Sleep(10 * time.Millisecond)
		got := o.take()
		for i := range got {
			o.settle(SettleAck, got[i])
		}
		if n += len(got); len(got) > 0 {
			o.sub.Grant(len(got))
		}
	}
	return n
}

// A backlog of hours that came all at once would knock over what was just repaired.
func TestResumedDeliveriesRise(t *testing.T) {
	bubble(t, Config{Limits: Limits{BatchTasks: 10_000}}, func(t *testing.T, s *System) {
		if _, err := s.CreateTopic(t.Context(), "mail", TopicChange{}); err != nil {
			t.Fatal(err)
		}
		w := subscribeTo(t, s, "mail", 1000)
		paused, running := true, false
		if _, err := s.ConfigureTopic(t.Context(), "mail", TopicChange{DeliveryPaused: &paused}); err != nil {
			t.Fatal(err)
		}
		tasks := make([]NewTask, 10_000)
		for i := range tasks {
			tasks[i] = after("mail", "", 0)
			tasks[i].Task.MaxRetries = -1
		}
		if _, err := s.Enqueue(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		if n := w.rate(time.Second); n != 0 {
			t.Fatalf("%d deliveries in a pause", n)
		}
		topic, err := s.ConfigureTopic(t.Context(), "mail", TopicChange{DeliveryPaused: &running, Ramp: 10 * time.Second})
		if err != nil || topic.Ramp != 10*time.Second || topic.Resumed == 0 {
			t.Fatalf("resume: %+v, %v", topic, err)
		}
		// It may hold 1,000: in the first second at most 10, 20, ... 100 in each tenth.
		last, all := 0, 0
		for second := range 4 {
			n := w.rate(time.Second)
			if n < last+500 || n > 1000*(second+1) {
				t.Errorf("second %d: %d deliveries after %d in the one before", second, n, last)
			}
			last = n
			all += n
		}
		if _, err := s.ConfigureTopic(t.Context(), "mail", TopicChange{DeliveryPaused: &running}); err != nil {
			t.Fatal(err)
		}
		if n := w.rate(100 * time.Millisecond); all+n != 10_000 {
			t.Errorf("%d deliveries and, when the ramp was called off, %d", all, n)
		}
	})
}
