package actors

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPolicyIsEffectiveWithinTwoSeconds changes a topic at one node, at any moment of
// the others' looks, and asks all of them.
func TestPolicyIsEffectiveWithinTwoSeconds(t *testing.T) {
	fleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *testFleet) {
		a := f.nodes["a"].sys
		for _, n := range f.nodes { // it is open everywhere
			if out := enqueueOne(t, n.sys, after("mail", "", time.Hour)); out.Err != nil {
				t.Fatal(out.Err)
			}
		}
		for turn := range 8 {
			paused := turn%2 == 0
			topic, err := a.ConfigureTopic(t.Context(), "mail", TopicChange{EnqueuePaused: &paused})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			for name, n := range f.nodes {
				if out := enqueueOne(t, n.sys, after("mail", "", time.Hour)); (out.Err != nil) != paused {
					t.Errorf("turn %d: node %s answers %v", turn, name, out.Err)
				}
				if status, err := n.sys.DescribeTopic(t.Context(), "mail"); err != nil || status.Version != topic.Version {
					t.Errorf("turn %d: node %s describes version %d (%v), want %d", turn, name, status.Version, err, topic.Version)
				}
			}
			time.Sleep(137 * time.Millisecond)
		}
	})
}

// TestTopicMadeAnewIsTakenIn: it looks like the one before, and begins with version 1.
func TestTopicMadeAnewIsTakenIn(t *testing.T) {
	fleetBubble(t, []string{"a", "b"}, func(t *testing.T, f *testFleet) {
		a, b := f.nodes["a"].sys, f.nodes["b"].sys
		paused := true
		for range 5 {
			if _, err := a.topic(t.Context(), "mail", true); err != nil {
				t.Fatal(err)
			}
			if _, err := a.ConfigureTopic(t.Context(), "mail", TopicChange{}); err != nil {
				t.Fatal(err)
			}
		}
		if out := enqueueOne(t, b, after("mail", "", time.Hour)); out.Err != nil {
			t.Fatal(out.Err)
		}
		if err := a.DeleteTopic(t.Context(), "mail", true); err != nil {
			t.Fatal(err)
		}
		if _, err := a.CreateTopic(t.Context(), "mail", TopicChange{EnqueuePaused: &paused}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if out := enqueueOne(t, b, after("mail", "", time.Hour)); out.Err == nil || out.Err.Reason != "ENQUEUE_PAUSED" {
			t.Errorf("a node that had the topic before answers %v", out.Err)
		}
	})
}

func TestChangeOfAnotherVersionIsRefused(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, s *System) {
		topic, err := s.CreateTopic(t.Context(), "mail", TopicChange{})
		if err != nil {
			t.Fatal(err)
		}
		retries, known := 7, topic.Version
		if topic, err = s.ConfigureTopic(t.Context(), "mail", TopicChange{MaxRetries: &retries, IfVersion: &known}); err != nil || topic.MaxRetries != 7 {
			t.Fatalf("the version that it has: %+v, %v", topic, err)
		}
		retries = 8
		_, err = s.ConfigureTopic(t.Context(), "mail", TopicChange{MaxRetries: &retries, IfVersion: &known})
		if e := storeError(err); e == nil || e.Kind != Aborted || e.Reason != "VERSION_MISMATCH" || e.Field != "if_version" {
			t.Errorf("a version that it had: %v", err)
		}
		if got, err := s.DescribeTopic(t.Context(), "mail"); err != nil || got.MaxRetries != 7 || got.Version != topic.Version {
			t.Errorf("after the refusal: %+v, %v", got.Topic, err)
		}
	})
}
