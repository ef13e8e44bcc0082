package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
)

// TestPolicyIsEffectiveWithinTwoSeconds changes a topic at one node, at any moment of
// the others' looks, and asks all of them.
func TestPolicyIsEffectiveWithinTwoSeconds(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		for _, n := range f.Nodes { // it is open everywhere
			if out := servicetest.EnqueueOne(t, n.Sys, servicetest.After("mail", "", time.Hour)); out.Err != nil {
				t.Fatal(out.Err)
			}
		}
		for turn := range 8 {
			paused := turn%2 == 0
			topic, err := a.Topics.Configure(t.Context(), "mail", service.TopicChange{EnqueuePaused: &paused})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			for name, n := range f.Nodes {
				if out := servicetest.EnqueueOne(t, n.Sys, servicetest.After("mail", "", time.Hour)); (out.Err != nil) != paused {
					t.Errorf("turn %d: node %s answers %v", turn, name, out.Err)
				}
				if status, err := n.Sys.Topics.Describe(t.Context(), "mail"); err != nil || status.Version != topic.Version {
					t.Errorf("turn %d: node %s describes version %d (%v), want %d", turn, name, status.Version, err, topic.Version)
				}
			}
			time.Sleep(137 * time.Millisecond)
		}
	})
}

// TestTopicMadeAnewIsTakenIn: it looks like the one before, and begins with version 1.
func TestTopicMadeAnewIsTakenIn(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *servicetest.Fleet) {
		a, b := f.Nodes["a"].Sys, f.Nodes["b"].Sys
		paused := true
		for range 5 {
			if _, err := a.Node().Topics().Open(t.Context(), "mail", true); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Topics.Configure(t.Context(), "mail", service.TopicChange{}); err != nil {
				t.Fatal(err)
			}
		}
		if out := servicetest.EnqueueOne(t, b, servicetest.After("mail", "", time.Hour)); out.Err != nil {
			t.Fatal(out.Err)
		}
		if err := a.Topics.Delete(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Topics.Create(t.Context(), "mail", service.TopicChange{EnqueuePaused: &paused}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if out := servicetest.EnqueueOne(t, b, servicetest.After("mail", "", time.Hour)); out.Err == nil || out.Err.Reason != "ENQUEUE_PAUSED" {
			t.Errorf("a node that had the topic before answers %v", out.Err)
		}
	})
}

func TestChangeOfAnotherVersionIsRefused(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		topic, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{})
		if err != nil {
			t.Fatal(err)
		}
		retries, known := 7, topic.Version
		if topic, err = s.Topics.Configure(t.Context(), "mail", service.TopicChange{MaxRetries: &retries, IfVersion: &known}); err != nil || topic.MaxRetries != 7 {
			t.Fatalf("the version that it has: %+v, %v", topic, err)
		}
		retries = 8
		_, err = s.Topics.Configure(t.Context(), "mail", service.TopicChange{MaxRetries: &retries, IfVersion: &known})
		if e := problem.FromStore(err); e == nil || e.Kind != problem.Aborted || e.Reason != "VERSION_MISMATCH" || e.Field != "if_version" {
			t.Errorf("a version that it had: %v", err)
		}
		if got, err := s.Topics.Describe(t.Context(), "mail"); err != nil || got.MaxRetries != 7 || got.Version != topic.Version {
			t.Errorf("after the refusal: %+v, %v", got.Topic, err)
		}
	})
}
