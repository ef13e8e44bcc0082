package actors_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/shard"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

func TestSubscribersOfADeletedTopicAreTold(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
		here, there := servicetest.Subscribe(t, a, "mail", 10), servicetest.Subscribe(t, b, "mail", 10)
		servicetest.Idle(time.Second)
		if err := a.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		servicetest.Idle(3 * time.Second)
		if here.Drains() == 0 || there.Drains() == 0 {
			t.Fatalf("told to go: %d times at the node that deleted the topic, %d at the other", here.Drains(), there.Drains())
		}
		here.Sub.Unsubscribe(nil)
		there.Sub.Unsubscribe(nil)
		again := servicetest.Subscribe(t, b, "mail", 10) // as a worker does
		servicetest.EnqueueOne(t, a, servicetest.After("mail", "a", 0))
		servicetest.Idle(3 * time.Second)
		again.Settle(subscription.SettleAck, again.TakeOne())
	})
}

// What reaches a topic's actor while it stops, or later, is answered.
func TestCallsThatMeetTheEndOfATopicAreAnswered(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		ref, _ := s.Node().Topics().Opened("mail") // as a call has it that looked the topic up just before
		added := func() <-chan *problem.Error {
			out, answered := new(outcome), make(chan *problem.Error, 1)
			config := ref.Config()
			m := &actors.AddBatch{Topic: config, Shards: make([][]shard.Addition, config.End())}
			task := servicetest.After("mail", "b", time.Hour)
			m.Shards[0] = []shard.Addition{{Task: &task.Task, To: out, Call: shard.NewCountdown(1, func() { answered <- out.err })}}
			ref.Add(m)
			return answered
		}
		s.Node().EndTopic("mail")
		for _, answered := range []<-chan *problem.Error{added(), added()} {
			select {
			case err := <-answered:
				if err != nil && !isClosed(err) {
					t.Errorf("enqueue behind the end: %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("enqueue behind the end is not answered")
			}
		}
		servicetest.Idle(time.Second)
		select {
		case err := <-added():
			if !isClosed(err) {
				t.Errorf("enqueue after the end: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("enqueue after the end is not answered")
		}
		if _, err := ref.Subscribe(t.Context(), subscription.Options{Topic: "mail", Worker: "w"}, &servicetest.Stream{T: t}); !isClosed(err) {
			t.Errorf("subscribe: %v", err)
		}
		w.Sub.Settle(7, []subscription.Settlement{{Kind: subscription.SettleAck, ID: "x"}})
		servicetest.Idle(time.Second)
		if got := w.TakeSettled(); len(got) != 1 || !isClosed(got[0].Err) {
			t.Errorf("settled: %+v", got)
		}
	})
}

func isClosed(err error) bool {
	var e *problem.Error
	return errors.As(err, &e) && e.Reason == "TOPIC_CLOSED"
}

// outcome is what became of one task.
type outcome struct{ err *problem.Error }

func (o *outcome) Added(*store.Task, store.AddResult) {}

func (o *outcome) Refused(err *problem.Error) { o.err = err }
