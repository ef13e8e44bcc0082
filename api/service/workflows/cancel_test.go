package workflows_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/memstore"
)

// submit stores a workflow of one task.
func submit(t *testing.T, s *service.Service, id string) {
	t.Helper()
	d := graph.Definition{Steps: []graph.Step{{Name: "a", Task: &graph.Template{Task: store.Task{MaxRetries: -1}}}}}
	if _, err := s.Workflows.Submit(t.Context(), &workflows.Submit{Topic: "mail", ID: id, Definition: d}); err != nil {
		t.Fatal(err)
	}
}

// TestCancelIsAnsweredWhenNobodyWaits ends the wait for what runs, as a node does that goes away:
// the workflow is cancelled all the same, and the answer says so.
func TestCancelIsAnsweredWhenNobodyWaits(t *testing.T) {
	servicetest.Bubble(t, actors.Config{}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", 10)
		submit(t, s, "w")
		servicetest.Idle(time.Second)
		if held := w.Take(); len(held) != 1 {
			t.Fatalf("the worker has %v", held)
		}
		waiting, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, end)
		status, err := s.Workflows.Cancel(t.Context(), waiting, "mail", "w", "", time.Minute)
		if err != nil || status.State != workflow.Cancelling {
			t.Errorf("the cancel is %+v, %v", status, err)
		}
	})
}

// TestAChangeWhoseAnswerIsLostIsNotRefused is that of package schedules.
func TestAChangeWhoseAnswerIsLostIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &servicetest.Lossy{Store: memstore.New()}
		s := servicetest.Start(t, actors.Config{}, st)
		defer s.Node().Stop(context.WithoutCancel(t.Context()))
		submit(t, s, "w")
		st.Set(func() {
			if _, err := s.Workflows.Resume(t.Context(), "mail", "w", ""); err != nil {
				t.Error(err)
			}
			st.Set(nil, true)
		}, false)
		_, err := s.Workflows.Pause(t.Context(), "mail", "w", "", "")
		if e := problem.FromStore(err); e == nil || e.Kind != problem.Unknown {
			t.Errorf("a pause that was made is answered with %v", err)
		}
		st.Set(nil, false)
	})
}
