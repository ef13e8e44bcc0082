package tenants_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/tenants"
	"github.com/ddq-io/ddq/store"
)

// hands are workers of some topics, one of each at each node.
type hands struct {
	*two
	all  []*hand
	held map[string]time.Time // by topic and id: the deadline of the hold
	most int                  // that were held at a time
	done map[string]int       // by topic
}

type hand struct {
	*servicetest.Stream
	at      *servicetest.Node
	dead    bool
	topic   string
	running []running
}

type running struct {
	subscription.Delivery
	ends time.Time
}

// hire has workers take up to so many tasks of each topic at each node.
func (f *two) hire(credit int, topics ...string) *hands {
	f.Helper()
	h := &hands{two: f, held: map[string]time.Time{}, done: map[string]int{}}
	for _, topic := range topics {
		for _, name := range []string{"a", "b"} {
			at := f.Nodes[name]
			h.all = append(h.all, &hand{Stream: servicetest.Subscribe(f.T, at.Sys, topic, credit), at: at, topic: topic})
		}
	}
	servicetest.Idle(200 * time.Millisecond) // until both nodes have claimed their shards
	return h
}

// work has the workers work for a while, on each task for so long.
func (h *hands) work(d, lasts time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, w := range h.all {
			if !w.dead {
				h.turn(w, lasts)
			}
		}
	}
}

func (h *hands) turn(w *hand, lasts time.Duration) {
	now := time.Now()
	for _, d := range w.Take() {
		w.running = append(w.running, running{d, now.Add(lasts)})
		h.held[w.topic+" "+d.Task.ID] = d.Deadline.Time()
	}
	valid := 0
	for _, until := range h.held {
		if until.After(now) {
			valid++
		}
	}
	h.most = max(h.most, valid)
	w.running = slices.DeleteFunc(w.running, func(r running) bool {
		if r.ends.After(now) {
			return false
		}
		w.Settle(subscription.SettleAck, r.Delivery)
		delete(h.held, w.topic+" "+r.Task.ID) // asked for; it may take a moment
		return true
	})
	for _, s := range w.TakeSettled() {
		if s.Err != nil {
			h.Errorf("%s: %v", s.ID, s.Err)
		}
		h.done[w.topic]++
		_ = w.Sub.Grant(1)
	}
}

// letGo has the workers be done with what they have.
func (h *hands) letGo() {
	for _, w := range h.all {
		for i := range w.running {
			w.running[i].ends = time.Now()
		}
	}
}

// due stores tasks that are due now.
func (f *two) due(n int, topics ...string) {
	f.Helper()
	for _, topic := range topics {
		f.Backlog(topic, n, func(_ int, t *service.NewTask) { t.Task.MaxRetries = -1 })
	}
}

// Two topics share three holds over two nodes. Each has its turns, room is taken when it comes, and the holds of
// workers that died count until they end.
func TestNodesTogetherHoldAsManyTasksAsANamespaceMay(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{MaxInFlight: 3}, func(f *two) {
		free := f.hire(10, "mail")
		h := f.hire(10, "acme/mail", "acme/sms")
		f.due(300, "acme/mail", "acme/sms", "mail")
		h.work(5*time.Second, 50*time.Millisecond)
		if got := h.done["acme/mail"] + h.done["acme/sms"]; got < 200 {
			f.Errorf("%d tasks are done in 5 s, want most of 300", got)
		}
		for _, topic := range []string{"acme/mail", "acme/sms"} {
			if h.done[topic] < 50 {
				f.Errorf("%d tasks of %s are done: it had no turns", h.done[topic], topic)
			}
		}
		free.work(5*time.Second, 50*time.Millisecond)
		if free.done["mail"] != 300 || free.most < 10 {
			f.Errorf("of another namespace %d tasks are done, %d at a time", free.done["mail"], free.most)
		}
		f.Kill(f.Nodes["b"])
		for _, w := range h.all {
			w.dead = w.at == f.Nodes["b"]
		}
		h.work(time.Minute, 50*time.Millisecond)
		if h.most != 3 {
			f.Errorf("%d tasks were held at a time, want 3", h.most)
		}
		if got := h.done["acme/mail"] + h.done["acme/sms"]; got < 590 {
			f.Errorf("%d tasks are done, want 600", got)
		}
	})
}

func TestTheQuotaOfTasksInFlightChanges(t *testing.T) {
	fleetOfTwo(t, nil, func(f *two) {
		h := f.hire(10, "acme/mail", "acme/sms")
		f.due(100, "acme/mail", "acme/sms")
		held := func(lasts time.Duration) int {
			h.work(3*time.Second, lasts)
			h.most = 0
			h.work(10*time.Millisecond, time.Hour)
			return h.most
		}
		if n := held(time.Hour); n != 40 {
			t.Errorf("without the quota %d are held, want 40", n)
		}
		f.quotas.Store(&tenants.Quotas{MaxInFlight: 5})
		if n := held(time.Hour); n != 40 {
			t.Errorf("%d are held: what was held goes on", n)
		}
		h.letGo()
		if n := held(time.Hour); n != 5 {
			t.Errorf("with the quota %d are held, want 5", n)
		}
		f.quotas.Store(&tenants.Quotas{MaxInFlight: 8})
		if n := held(time.Hour); n != 8 {
			t.Errorf("with a larger one %d are held, want 8", n)
		}
		f.quotas.Store(nil)
		if n := held(time.Hour); n != 40 {
			t.Errorf("without it again %d are held, want 40", n)
		}
	})
}

// A task that waits for room says so, and passes caps of its topic and its key as well.
func TestCapsOfATopicHoldBelowTheQuotaOfItsNamespace(t *testing.T) {
	fleetOfTwo(t, &tenants.Quotas{MaxInFlight: 3}, func(f *two) {
		f.Limited("acme/mail", service.TopicChange{Concurrency: new(2), KeyConcurrency: new(1)})
		h := f.hire(10, "acme/mail", "acme/sms")
		keys := 0
		f.Backlog("acme/mail", 100, func(_ int, t *service.NewTask) {
			keys++
			t.Task.MaxRetries, t.Task.Traits = -1, &store.Traits{ConcurrencyKey: fmt.Sprint(keys % 3)}
		})
		f.due(100, "acme/sms")
		h.work(time.Second, time.Hour)
		waiting, _, err := f.a.Finder.List(f.acme(), "acme/sms", store.StateReady, 1, "")
		if err != nil || len(waiting) != 1 || waiting[0].WaitingFor != service.WaitsForConcurrency {
			f.Errorf("what waits: %v, %v", waiting, err)
		}
		h.letGo()
		h.work(15*time.Second, 50*time.Millisecond)
		if h.most != 3 || h.done["acme/mail"]+h.done["acme/sms"] != 200 {
			f.Errorf("%d at a time, done: %v", h.most, h.done)
		}
	})
}
