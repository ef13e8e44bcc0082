package service_test

import (
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

func TestSlackIsResolvedOnce(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		task := func() service.NewTask {
			task := servicetest.After("mail", "a", time.Minute)
			task.Slack = time.Minute
			return task
		}
		now := store.Millis(time.Now().UnixMilli())
		first := servicetest.EnqueueOne(t, s, task())
		if first.Err != nil || first.Due < now.Add(time.Minute) || first.Due > now.Add(2*time.Minute) {
			t.Fatalf("first: %+v", first)
		}
		time.Sleep(time.Second)
		if again := servicetest.EnqueueOne(t, s, task()); again.Err != nil || !again.Deduplicated || again.Due != first.Due {
			t.Errorf("again: %+v, want %+v", again, first)
		}
		other := task()
		other.Slack++
		if out := servicetest.EnqueueOne(t, s, other); out.Err == nil || out.Err.Reason != "ID_CONFLICT" {
			t.Errorf("with another slack: %+v", out)
		}
		for name, bad := range map[string]struct {
			edit  func(*service.NewTask)
			field string
		}{
			"negative":           {func(n *service.NewTask) { n.Slack = -1 }, "slack"},
			"beyond every limit": {func(n *service.NewTask) { n.Slack = 1 << 62 }, "slack"},
			"latest too early":   {func(n *service.NewTask) { n.Slack, n.Latest = 0, now }, "latest_time"},
			"latest too late":    {func(n *service.NewTask) { n.Slack, n.Latest = 0, 1<<50 }, "latest_time"},
		} {
			n := task()
			n.Task.ID = ""
			bad.edit(&n)
			if out := servicetest.EnqueueOne(t, s, n); out.Err == nil || out.Err.Field != bad.field {
				t.Errorf("%s: %+v", name, out)
			}
		}
		past := servicetest.After("mail", "b", 0)
		past.When.At, past.Latest = now-1000, now.Add(10*time.Second)
		if out := servicetest.EnqueueOne(t, s, past); out.Err != nil || out.Due < now || out.Due > past.Latest {
			t.Errorf("begun in the past: %+v", out)
		}
	})
}
