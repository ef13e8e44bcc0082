package service_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/store"
)

// TestARefusedTaskMakesNoTopic: of a topic that is not there yet, a task is held against the limits that it would have.
func TestARefusedTaskMakesNoTopic(t *testing.T) {
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{MaxPayload: 100, MaxDelay: time.Hour}}, func(t *testing.T, s *service.Service) {
		for reason, task := range map[string]service.NewTask{
			"BAD_ID":            {Task: store.Task{ID: "no id"}},
			"PAYLOAD_TOO_LARGE": {Task: store.Task{Payload: make([]byte, 101)}},
			"DELAY_TOO_LONG":    {When: service.When{Delay: 2 * time.Hour}},
			"BAD_DELAY":         {When: service.When{Delay: -1}},
			"BAD_TIME":          {Task: store.Task{Expires: 1}},
		} {
			task.Topic = "refused"
			results, err := s.Tasks.Enqueue(t.Context(), []service.NewTask{task})
			if err != nil || results[0].Err == nil || results[0].Err.Reason != reason {
				t.Errorf("%s: got %+v, %v", reason, results, err)
			}
			e := (*problem.Error)(nil)
			if _, err := s.Topics.Describe(t.Context(), "refused"); !errors.As(err, &e) || e.Kind != problem.NotFound {
				t.Errorf("%s: the topic is there: %v", reason, err)
			}
		}
		results, err := s.Tasks.Enqueue(t.Context(), []service.NewTask{
			{Topic: "taken", Task: store.Task{Payload: make([]byte, 101)}}, {Topic: "taken"},
		})
		if err != nil || results[0].Err == nil || results[1].Err != nil {
			t.Errorf("of two tasks got %+v, %v", results, err)
		}
	})
}
