package service_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/upkeep"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// bury makes dead letters of one second each, in order.
func bury(t *testing.T, s *service.Service, topic string, from, to int) {
	t.Helper()
	w := servicetest.Subscribe(t, s, topic, 1)
	defer w.Sub.Unsubscribe(nil)
	for i := from; i < to; i++ {
		if out := servicetest.EnqueueOne(t, s, servicetest.After(topic, fmt.Sprintf("dead-%03d", i), 0)); out.Err != nil {
			t.Fatal(out.Err)
		}
		d := w.TakeOne()
		w.Sub.Settle(1, []subscription.Settlement{{Kind: subscription.SettleNack, ID: d.Task.ID, Token: d.Token, Permanent: true}})
		time.Sleep(time.Second)
		synctest.Wait()
		w.Sub.Grant(1)
	}
}

// letters are the ids of the dead letters of a topic, the oldest first.
func letters(t *testing.T, s *service.Service, topic string) (ids []string) {
	t.Helper()
	all, _, err := s.DeadLetters.List(t.Context(), topic, service.DeadFilter{}, 1000, "")
	if err != nil {
		t.Fatal(err)
	}
	byTime := map[store.Millis]string{}
	for _, f := range all {
		byTime[f.Finished] = f.ID
	}
	for _, id := range ordered.All(byTime, func(a, b store.Millis) int { return int(a - b) }) {
		ids = append(ids, id)
	}
	return ids
}

// TestDoneTasksAreTrimmedWhenNoneAreKeptAnyMore takes the retention away: those that are
// kept go when their own has passed, and then former shards go, too.
func TestDoneTasksAreTrimmedWhenNoneAreKeptAnyMore(t *testing.T) {
	servicetest.FaultBubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service, f *servicetest.FaultyStore) {
		if _, err := s.Topics.Create(t.Context(), "mail", service.TopicChange{DoneRetention: new(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		w := servicetest.Subscribe(t, s, "mail", 10)
		for i := range 10 {
			servicetest.EnqueueOne(t, s, servicetest.After("mail", fmt.Sprint(i), 0))
		}
		for _, d := range w.Take() {
			w.Settle(subscription.SettleAck, d)
		}
		synctest.Wait()
		if _, err := s.Topics.Configure(t.Context(), "mail", service.TopicChange{DoneRetention: new(time.Duration(0))}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Topics.Reshard(t.Context(), "mail", 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		if stats, err := f.Stats(t.Context(), []store.Shard{{Topic: "mail"}}); err != nil || stats[0].Done != 10 {
			t.Errorf("%d done tasks half an hour later, want 10, which are kept for an hour: %v", stats[0].Done, err)
		}
		time.Sleep(time.Hour)
		if topic, err := f.GetTopic(t.Context(), "mail"); err != nil || topic.Former[0].Shards != 0 {
			t.Errorf("former shards whose tasks are all gone: %v, %v", topic.Former, err)
		}
	})
}

// asynq keeps at most 10,000 archived tasks for 90 days, and says neither which went
// nor that any did. Here both are a topic's to say, and it is counted: asked for in
// hibiken/asynq#329, and by those whose Redis archived tasks fill (hibiken/asynq#711, #730).
func TestDeadLettersAreTrimmed(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		a := f.Nodes["a"].Sys
		most, kept := 10, time.Minute
		if _, err := a.Topics.Create(t.Context(), "capped", service.TopicChange{MaxDead: &most}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Topics.Create(t.Context(), "aged", service.TopicChange{DeadRetention: &kept}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Topics.Create(t.Context(), "kept", service.TopicChange{}); err != nil {
			t.Fatal(err)
		}
		bury(t, a, "kept", 0, 3)
		bury(t, a, "capped", 0, 25)
		bury(t, a, "aged", 0, 5)
		time.Sleep(upkeep.ChoresEvery + time.Second)
		synctest.Wait()
		want := make([]string, most)
		for i := range want {
			want[i] = fmt.Sprintf("dead-%03d", 15+i)
		}
		if got := letters(t, a, "capped"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("capped: got %v, want %v", got, want)
		}
		if got := letters(t, a, "aged"); len(got) != 5 {
			t.Errorf("aged: %d letters before their time, want 5", len(got))
		}
		time.Sleep(kept)
		if got := letters(t, a, "aged"); len(got) != 0 {
			t.Errorf("aged: %v are left", got)
		}
		if got := letters(t, a, "kept"); len(got) != 3 {
			t.Errorf("kept: got %v", got)
		}
		if got := f.Trimmed(metrics.TrimmedOver); got != 15 {
			t.Errorf("%v letters are counted as too many, want 15", got)
		}
		if got := f.Trimmed(metrics.TrimmedOld); got != 5 {
			t.Errorf("%v letters are counted as too old, want 5", got)
		}
	})
}

// TestTwoTrimmersDeleteNoMore has every node trim at once, as when they do not agree
// on who is to do it.
func TestTwoTrimmersDeleteNoMore(t *testing.T) {
	servicetest.FleetBubble(t, []string{"a", "b", "c"}, func(t *testing.T, f *servicetest.Fleet) {
		topic, err := f.Nodes["a"].Sys.Topics.Create(t.Context(), "mail", service.TopicChange{})
		if err != nil {
			t.Fatal(err)
		}
		bury(t, f.Nodes["a"].Sys, "mail", 0, 12)
		topic.MaxDead = 5
		for _, node := range f.Nodes {
			go func() {
				if err := node.Upkeep.CapDead(t.Context(), &topic); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if got := letters(t, f.Nodes["a"].Sys, "mail"); len(got) != 5 || got[0] != "dead-007" {
			t.Errorf("%v are left, want the last 5", got)
		}
	})
}
