package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/entity/message"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/schedules"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
	"github.com/ddq-io/ddq/timer/timetable"
)

// ackNext acks a delivery with tasks that come next.
func ackNext(t *testing.T, s *service.Service, topic string, d subscription.Delivery, next ...service.NewTask) (subscription.Settled, *problem.Error) {
	t.Helper()
	asks := []subscription.Settlement{{Kind: subscription.SettleAck, ID: d.Task.ID, Token: d.Token}}
	done, err := s.Delivery.SettleNext(t.Context(), topic, asks, service.Nexts{0: {Tasks: next}})
	synctest.Wait()
	if err != nil {
		return subscription.Settled{}, problem.FromStore(err)
	}
	return done[0], done[0].Err
}

func nextTask(topic, payload string) service.NewTask {
	return service.NewTask{Topic: topic, Task: store.Task{Payload: []byte(payload), MaxRetries: -1}}
}

// Each way that a task of an ack can go, and that each arrives once.
func TestAckEnqueuesWhatComesNext(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		mail, audit := servicetest.Subscribe(t, s, "mail", 100), servicetest.Subscribe(t, s, "audit", 100)
		servicetest.EnqueueOne(t, s, nextTask("mail", "first"))
		first := mail.Gets("first")["first"]
		named, ordered, keyed, later := nextTask("mail", "named"), nextTask("mail", "ordered"), nextTask("audit", "keyed"), nextTask("audit", "later")
		named.Task.ID = "named"
		ordered.Task.Traits = &store.Traits{OrderingKey: "o"}
		keyed.Task.Key = &store.Key{Text: "k"}
		later.When.Delay = time.Hour
		if done, err := ackNext(t, s, "mail", first, nextTask("mail", "any"), named, ordered, nextTask("audit", "other"), keyed, later); err != nil || done.Already {
			t.Fatalf("ack: %+v, %v", done, err)
		}
		servicetest.Idle(time.Second)
		got := mail.Gets("any", "named", "ordered")
		others := audit.Gets("other", "keyed")
		for _, d := range got {
			mail.Settle(subscription.SettleAck, d)
		}
		for _, d := range others {
			audit.Settle(subscription.SettleAck, d)
		}
		for _, d := range []subscription.Delivery{got["any"], got["named"], got["ordered"], others["other"], others["keyed"]} {
			if c := d.Task.Cause; c == nil || c.Topic != "mail" || c.ID != first.Task.ID {
				t.Errorf("the cause of %s is %+v", d.Task.Payload, c)
			}
		}
		topic, _ := s.Node().Topics().Opened("mail")
		of := func(id string) store.Shard { return place.In(topic.Config(), topic.Config().Active(), id) }
		if of(got["any"].Task.ID) != of(first.Task.ID) {
			t.Errorf("the task without an id is in shard %v, and its cause in %v", of(got["any"].Task.ID), of(first.Task.ID))
		}
		if _, err := ackNext(t, s, "mail", first, nextTask("mail", "again")); err != nil {
			t.Errorf("the same ack again: %v", err)
		}
		servicetest.Idle(time.Second)
		mail.Gets()
		servicetest.Idle(time.Hour)
		audit.Gets("later")
	})
}

// What Enqueue would refuse is refused before anything is done.
func TestAckWithATaskThatCannotBeIsRefused(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		configure(t, s, "mail", func(c *store.Topic) { c.MaxPayload = 256 << 10 })
		servicetest.EnqueueOne(t, s, nextTask("mail", "first"))
		first := w.Gets("first")["first"]
		good, bad := nextTask("mail", "good"), func(change func(*service.NewTask)) service.NewTask {
			n := nextTask("mail", "bad")
			change(&n)
			return n
		}
		large := strings.Repeat("x", 300<<10)
		full := strings.Repeat("x", 256<<10)
		for name, c := range map[string]struct {
			next          []service.NewTask
			reason, field string
		}{
			"payload": {[]service.NewTask{good, good, bad(func(n *service.NewTask) { n.Task.Payload = []byte(large) })}, "PAYLOAD_TOO_LARGE", "enqueue[2].payload"},
			"topic":   {[]service.NewTask{bad(func(n *service.NewTask) { n.Topic = "no topic" })}, "BAD_NAME", "enqueue[0].topic"},
			"delay":   {[]service.NewTask{bad(func(n *service.NewTask) { n.When.Delay = -1 })}, "BAD_DELAY", "enqueue[0].delay"},
			"id":      {[]service.NewTask{good, bad(func(n *service.NewTask) { n.Task.ID = "a b" })}, "BAD_ID", "enqueue[1].id"},
			"number":  {slices.Repeat([]service.NewTask{good}, 101), "BATCH_SIZE", "enqueue"},
			"bytes":   {slices.Repeat([]service.NewTask{nextTask("mail", full)}, 5), "BATCH_SIZE", "enqueue"},
		} {
			if _, err := ackNext(t, s, "mail", first, c.next...); err == nil || err.Reason != c.reason || err.Field != c.field {
				t.Errorf("%s: got %+v, want %s of %s", name, err, c.reason, c.field)
			}
		}
		if found, err := s.Tasks.Get(t.Context(), "mail", first.Task.ID); err != nil || found.State != store.StateRunning {
			t.Errorf("the task is %v, %v, want held", found.State, err)
		}
		lost := first
		lost.Token = subscription.EncodeToken(0, store.NewToken())
		if _, err := ackNext(t, s, "mail", lost, good); err == nil || err.Reason != "HOLD_LOST" {
			t.Errorf("an ack of a lost hold: %v", err)
		}
		if page, _, err := s.Finder.List(t.Context(), "mail", store.StateUnknown, 10, ""); len(page) != 1 || err != nil {
			t.Errorf("there are %d tasks, %v, want the one that is held", len(page), err)
		}
		servicetest.Idle(time.Second)
		w.Gets()
	})
}

// A topic that takes no tasks refuses no ack: they wait, and those of other topics do not.
func TestTasksOfAcksWaitForTheirTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		other := servicetest.Subscribe(t, s, "audit", 100)
		servicetest.EnqueueOne(t, s, nextTask("mail", "first"))
		first := w.Gets("first")["first"]
		configure(t, s, "mail", func(c *store.Topic) { c.EnqueuePaused = true })
		if _, err := ackNext(t, s, "mail", first, nextTask("mail", "waits"), nextTask("audit", "goes")); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(20 * time.Second)
		w.Gets()
		other.Settle(subscription.SettleAck, other.TakeOne())
		configure(t, s, "mail", func(c *store.Topic) { c.EnqueuePaused = false })
		servicetest.Idle(10 * time.Second)
		w.Gets("waits")
	})
}

func configure(t *testing.T, s *service.Service, topic string, change func(*store.Topic)) {
	t.Helper()
	ref, err := s.Node().Topics().Open(t.Context(), topic, true)
	if err != nil {
		t.Fatal(err)
	}
	c := *ref.Config()
	change(&c)
	if _, err := s.Node().Store().PutTopic(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := s.Node().Topics().Refresh(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// Where too many wait for their topics an ack of more is refused, and whatever may leave some.
func TestAckWhoseTasksWouldFillTheOutboxIsRefused(t *testing.T) {
	c := actors.Config{Topic: store.Topic{Shards: 1}, Limits: actors.Limits{Parcels: 20}}
	servicetest.Bubble(t, c, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		other := servicetest.Subscribe(t, s, "audit", 100)
		configure(t, s, "audit", func(c *store.Topic) { c.EnqueuePaused = true })
		servicetest.EnqueueOne(t, s, nextTask("mail", "first"))
		servicetest.EnqueueOne(t, s, nextTask("mail", "second"))
		held := w.Gets("first", "second")
		audits := slices.Repeat([]service.NewTask{nextTask("audit", "waits")}, 20)
		if _, err := ackNext(t, s, "mail", held["first"], audits...); err != nil {
			t.Fatal(err)
		}
		full := func(what string, err error) {
			t.Helper()
			if e := problem.FromStore(err); e == nil || e.Kind != problem.Exhausted || e.Reason != "OUTBOX_FULL" || e.RetryAfter == 0 {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := ackNext(t, s, "mail", held["second"], audits[0])
		full("an ack", problem.AsError(err))
		_, putErr := s.Schedules.Put(t.Context(), schedules.Definition{Topic: "mail", Name: "daily", Spec: schedule.Spec{Timetable: timetable.Spec{Entries: []timetable.Entry{{Cron: "@daily"}}}}}, nil)
		full("a schedule", putErr)
		_, submitErr := s.Workflows.Submit(t.Context(), &workflows.Submit{Topic: "mail", Definition: graph.Definition{Steps: []graph.Step{{Name: "a", Task: &graph.Template{Task: store.Task{MaxRetries: -1}}}}}})
		full("a workflow", submitErr)

		configure(t, s, "audit", func(c *store.Topic) { c.EnqueuePaused = false })
		servicetest.Idle(20 * time.Second)
		if got := other.Take(); len(got) != 20 {
			t.Errorf("%d of 20 tasks came", len(got))
		}
		if _, err := ackNext(t, s, "mail", held["second"], nextTask("mail", "third")); err != nil {
			t.Errorf("the ack of the task, which is still held: %v", err)
		}
		w.Gets("third")
	})
}

// What cannot be delivered is a dead letter of the ack's topic, and is tried again by a requeue.
func TestTaskOfAnAckThatCannotBeDeliveredIsADeadLetter(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		configure(t, s, "audit", func(*store.Topic) {})
		servicetest.EnqueueOne(t, s, nextTask("mail", "first"))
		first := w.Gets("first")["first"]
		servicetest.EnqueueOne(t, s, service.NewTask{Topic: "audit", Task: store.Task{ID: "taken", MaxRetries: -1}, When: service.When{Delay: time.Hour}})
		configure(t, s, "audit", func(c *store.Topic) { c.EnqueuePaused = true })
		large, taken := nextTask("audit", "too large by then"), nextTask("audit", "x")
		large.Task.ID, taken.Task.ID = "large", "taken"
		if _, err := ackNext(t, s, "mail", first, large, taken); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		configure(t, s, "audit", func(c *store.Topic) { c.EnqueuePaused, c.MaxPayload = false, 3 })
		servicetest.Idle(10 * time.Second)
		for _, size := range []int{1, 10} {
			why := make(map[string]string)
			for token := ""; ; {
				page, next, err := s.DeadLetters.List(t.Context(), "mail", service.DeadFilter{}, size, token)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range page {
					why[f.ID] = f.LastError
					if f.Reason != store.ReasonUndeliverable || f.Topic != "mail" || f.Finished == 0 {
						t.Errorf("%s is %+v", f.ID, f.Snapshot)
					}
				}
				if token = next; next == "" {
					break
				}
			}
			if len(why) != 2 || !strings.Contains(why["large"], "for topic audit: payload has 17 bytes") || !strings.Contains(why["taken"], "ID_CONFLICT") {
				t.Fatalf("dead letters are %v", why)
			}
		}
		for _, c := range []struct {
			most int64
			f    service.DeadFilter
			want service.Progress
		}{
			{100, service.DeadFilter{}, service.Progress{Matched: 2, Examined: 2}},
			{100, service.DeadFilter{ErrorContains: "ID_CONFLICT"}, service.Progress{Matched: 1, Examined: 2}},
			{1, service.DeadFilter{}, service.Progress{Matched: 1, Examined: 1, Capped: true}},
		} {
			if got, err := s.DeadLetters.Count(t.Context(), "mail", c.f, service.DryRun{Most: c.most}); err != nil || got != c.want {
				t.Errorf("a dry run over %d counts %+v, %v, want %+v", c.most, got, err, c.want)
			}
		}
		configure(t, s, "audit", func(c *store.Topic) { c.MaxPayload = 100 })
		if done, err := s.DeadLetters.Requeue(t.Context(), "mail", []string{"large", "none"}, service.DeadFilter{}, service.Pace{}); done.Count != 1 || len(done.Missing) != 1 || err != nil {
			t.Errorf("requeued %+v, %v", done, err)
		}
		servicetest.Idle(time.Second)
		servicetest.Subscribe(t, s, "audit", 100).Gets("too large by then")
		if n, _, err := s.DeadLetters.Delete(t.Context(), "mail", nil, service.DeadFilter{Reason: store.ReasonUndeliverable}, service.Pace{}); n != 1 || err != nil {
			t.Errorf("delete: %d, %v", n, err)
		}
		if page, _, err := s.DeadLetters.List(t.Context(), "mail", service.DeadFilter{}, 10, ""); len(page) != 0 || err != nil {
			t.Errorf("what is left: %+v, %v", page, err)
		}
	})
}

// Two of one id, for two topics, are two dead letters, and so is one that a node of before has kept under the id alone.
// The id is that of all of them.
func TestUndeliverableTasksOfOneID(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		for _, topic := range []string{"invoices", "shipping"} {
			configure(t, s, topic, func(c *store.Topic) { c.EnqueuePaused = true })
		}
		of := func(topic, id string) service.NewTask {
			task := nextTask(topic, "of "+topic)
			task.Task.ID = id
			return task
		}
		servicetest.EnqueueOne(t, s, nextTask("mail", "first"))
		if _, err := ackNext(t, s, "mail", w.Gets("first")["first"], of("invoices", "order-17"), of("shipping", "order-17"), of("shipping", "other")); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(time.Second)
		for _, topic := range []string{"invoices", "shipping"} {
			configure(t, s, topic, func(c *store.Topic) { c.EnqueuePaused, c.MaxPayload = false, 3 })
		}
		servicetest.Idle(10 * time.Second)
		mail, _ := s.Node().Topics().Opened("mail")
		at := store.Shard{Topic: "mail"}
		kept, err := s.Node().Cells().Listed(t.Context(), at, message.List, store.Wake{}, 10)
		if err != nil || len(kept) != 3 {
			t.Fatalf("%d are kept, %v", len(kept), err)
		}
		old := kept[0]
		old.ID = store.CellID(store.CellRefused) + "order-17"
		if _, _, err := s.Node().Cells().Commit(t.Context(), at.For(mail.Config().Life), nil, []store.Commit{{Puts: []store.Put{{Cell: old}}}}); err != nil {
			t.Fatal(err)
		}
		why := make(map[string]int)
		page, _, err := s.DeadLetters.List(t.Context(), "mail", service.DeadFilter{}, 100, "")
		for _, f := range page {
			topic, _, _ := strings.Cut(f.LastError, ":")
			why[f.ID+" "+topic]++
		}
		if err != nil || len(why) != 3 || why["order-17 for topic invoices"] != 2 || why["order-17 for topic shipping"] != 1 || why["other for topic shipping"] != 1 {
			t.Fatalf("dead letters are %v, %v", why, err)
		}
		configure(t, s, "shipping", func(c *store.Topic) { c.MaxPayload = 100 })
		if done, err := s.DeadLetters.Requeue(t.Context(), "mail", []string{"order-17", "none"}, service.DeadFilter{}, service.Pace{}); done.Count != 3 || !slices.Equal(done.Missing, []string{"none"}) || err != nil {
			t.Errorf("requeued %+v, %v", done, err)
		}
		servicetest.Idle(10 * time.Second)
		servicetest.Subscribe(t, s, "shipping", 100).Gets("of shipping")
		if n, missing, err := s.DeadLetters.Delete(t.Context(), "mail", []string{"order-17"}, service.DeadFilter{}, service.Pace{}); n != 2 || len(missing) != 0 || err != nil {
			t.Errorf("deleted %d, missing %v, %v", n, missing, err)
		}
		if page, _, err := s.DeadLetters.List(t.Context(), "mail", service.DeadFilter{}, 100, ""); len(page) != 1 || page[0].ID != "other" || err != nil {
			t.Errorf("what is left: %+v, %v", page, err)
		}
	})
}

// A node that owns nothing acks, and the owner hands on what is left for other topics.
func TestTasksOfAcksAreHandedOnByTheOwner(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		s, names := f.Nodes["a"].Sys, []string{"a", "b"}
		for i := range 40 {
			servicetest.EnqueueOne(t, s, nextTask("mail", fmt.Sprint(i)))
		}
		servicetest.Idle(time.Second)
		w := servicetest.Subscribe(t, s, "mail", 100)
		servicetest.Idle(time.Second)
		got := w.Take()
		if len(got) != 40 {
			t.Fatalf("got %d deliveries, want 40", len(got))
		}
		var want []string
		for i, d := range got {
			want = append(want, fmt.Sprint("next of ", i))
			if _, err := ackNext(t, f.Nodes[names[i%2]].Sys, "mail", d, nextTask("audit", fmt.Sprint("next of ", i))); err != nil {
				t.Fatal(err)
			}
		}
		servicetest.Idle(5 * time.Second)
		audit := servicetest.Subscribe(t, s, "audit", 100)
		servicetest.Idle(time.Second)
		audit.Gets(want...)
	})
}

// The answers of an ack are lost: its tasks are there once, and it says that it was accepted.
func TestLostAnswerOfAnAckThatEnqueues(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{}, func(t *testing.T, s *service.Service, faulty *servicetest.FaultyStore) {
		w := servicetest.Subscribe(t, s, "mail", 100)
		servicetest.EnqueueOne(t, s, nextTask("mail", "first"))
		first := w.Gets("first")["first"]
		faulty.Losing["commit"] = 1
		if done, err := ackNext(t, s, "mail", first, nextTask("mail", "next"), nextTask("audit", "other")); err != nil || !done.Already {
			t.Errorf("the ack is %+v, %v", done, err)
		}
		servicetest.Idle(10 * time.Second)
		w.Gets("next")
		audit := servicetest.Subscribe(t, s, "audit", 100)
		servicetest.Idle(time.Second)
		audit.Gets("other")
	})
}

// Those that could not be delivered are listed to the last, also when fewer of them fit into a
// page than were asked for.
func TestLargeUndeliverableTasksAreAllListed(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		const n = 30
		mail := servicetest.Subscribe(t, s, "mail", 100)
		configure(t, s, "audit", func(c *store.Topic) { c.EnqueuePaused = true })
		for i := range n {
			name := fmt.Sprint(i)
			servicetest.EnqueueOne(t, s, nextTask("mail", name))
			if _, err := ackNext(t, s, "mail", mail.Gets(name)[name], nextTask("audit", strings.Repeat(name[:1], 200<<10))); err != nil {
				t.Fatal(err)
			}
		}
		configure(t, s, "audit", func(c *store.Topic) { c.EnqueuePaused, c.MaxPayload = false, 3 })
		servicetest.Idle(20 * time.Second)
		listed, token := 0, ""
		for more := true; more; more = token != "" {
			page, next, err := s.DeadLetters.List(t.Context(), "mail", service.DeadFilter{}, 100, token)
			if err != nil {
				t.Fatal(err)
			}
			listed, token = listed+len(page), next
		}
		if listed != n {
			t.Errorf("%d of %d are listed", listed, n)
		}
	})
}

// TestReceiptsOfATopicThatIsGoneGo: a day behind its end no call of it is on its way any more.
func TestReceiptsOfATopicThatIsGoneGo(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a"}, func(t *testing.T, f *servicetest.Fleet) {
		s := f.Nodes["a"].Sys
		f.Limited("audit", service.TopicChange{Shards: new(1)})
		receipts := func() (of []string) {
			page, _, err := f.Store.CellPage(t.Context(), store.Shard{Topic: "audit"}, store.CellTally, "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range page {
				q, _ := store.ReceiptOf(c.ID, "audit")
				of = append(of, q.Source.Topic)
			}
			slices.Sort(of)
			return of
		}
		for _, topic := range []string{"gone", "kept"} {
			f.Limited(topic, service.TopicChange{Shards: new(1)})
			w := servicetest.Subscribe(t, s, topic, 10)
			servicetest.EnqueueOne(t, s, nextTask(topic, "first"))
			if _, err := ackNext(t, s, topic, w.Gets("first")["first"], nextTask("audit", topic)); err != nil {
				t.Fatal(err)
			}
			servicetest.Idle(time.Second)
		}
		if got := receipts(); !slices.Equal(got, []string{"gone", "kept"}) {
			t.Fatalf("receipts of %v", got)
		}
		if err := s.Topics.Delete(t.Context(), "gone", true); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(24 * time.Hour)
		if got := receipts(); !slices.Equal(got, []string{"gone", "kept"}) {
			t.Errorf("after a day receipts of %v", got)
		}
		servicetest.Idle(2 * time.Hour)
		if got := receipts(); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("after 26 hours receipts of %v", got)
		}
	})
}
