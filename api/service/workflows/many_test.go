package workflows_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/subscription"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/api/service"
	"github.com/ddq-io/ddq/api/service/servicetest"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/store"
)

// TestMoreWorkflowsAreOpenThanAShardRemembers takes chains further in any order: what is remembered
// of one is forgotten while another one of the same look is read.
func TestMoreWorkflowsAreOpenThanAShardRemembers(t *testing.T) {
	const open = 600
	servicetest.Bubble(t, actors.Config{Topic: store.Topic{Shards: 1}}, func(t *testing.T, s *service.Service) {
		w := servicetest.Subscribe(t, s, "mail", open)
		task := func() *graph.Template { return &graph.Template{Task: store.Task{MaxRetries: -1}} }
		for i := range open {
			d := graph.Definition{Steps: []graph.Step{
				{Name: "a", Task: task()},
				{Name: "b", Task: task(), After: []graph.After{{Step: "a"}}},
				{Name: "c", Task: task(), After: []graph.After{{Step: "b"}}},
			}}
			if _, err := s.Workflows.Submit(t.Context(), &workflows.Submit{Topic: "mail", ID: fmt.Sprint("w", i), Definition: d}); err != nil {
				t.Fatal(err)
			}
		}
		random, held := rand.New(rand.NewPCG(1, 2)), []subscription.Delivery(nil)
		for acked := 0; acked < 3*open; servicetest.Idle(10 * time.Millisecond) {
			if held = append(held, w.Take()...); len(held) == 0 {
				servicetest.Idle(time.Second)
				if held = w.Take(); len(held) == 0 {
					t.Fatalf("%d of %d tasks came", acked, 3*open)
				}
			}
			for range min(1+random.IntN(50), len(held)) {
				i, last := random.IntN(len(held)), len(held)-1
				w.Settle(subscription.SettleAck, held[i])
				held[i], held = held[last], held[:last]
				acked++
				if err := w.Sub.Grant(1); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range open {
			if status, _, err := s.Workflows.Get(t.Context(), "mail", fmt.Sprint("w", i), false); err != nil || status.State != workflow.Done {
				t.Errorf("workflow %d is %v, %v", i, status.State, err)
			}
		}
	})
}
