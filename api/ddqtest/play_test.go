package ddqtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqtest"
	"github.com/ddq-io/ddq/api/worker"
)

// order is a workflow as users have them: it charges, waits for an approval and ships. What was charged
// is paid back when it comes to nothing.
func order() client.Workflow {
	return client.Workflow{Undo: true, Steps: []client.Step{
		{Name: "charge", Task: client.Task{MaxRetries: new(3)}, Undo: &client.Task{}},
		{Name: "approve", Wait: client.Wait{Signal: "approve", Timeout: 2 * time.Hour}},
		{Name: "ship", After: client.After("charge", "approve")},
	}}
}

// shop is what the handlers of an order did, in order.
type shop struct {
	mu   sync.Mutex
	done []string
}

func (s *shop) does(what string) worker.HandlerFunc {
	return func(_ context.Context, t worker.Task) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.done = append(s.done, what)
		return t.SetResult([]byte(what))
	}
}

func (s *shop) steps() worker.Steps {
	return worker.Steps{"charge": s.does("charged"), "charge undo": s.does("paid back"), "ship": s.does("shipped")}
}

func approval(after time.Duration) []ddqtest.Signal {
	return []ddqtest.Signal{{After: after, Signal: client.Signal{Name: "approve"}}}
}

func TestPlaysOfAnOrder(t *testing.T) {
	for name, test := range map[string]struct {
		play  ddqtest.Play
		state client.WorkflowState
		done  string
	}{
		"it is approved":     {ddqtest.Play{Signals: approval(time.Hour)}, client.WorkflowDone, "charged shipped"},
		"nobody approves":    {ddqtest.Play{Limit: 3 * time.Hour}, client.WorkflowFailed, "charged paid back"},
		"it cannot be sent":  {ddqtest.Play{Signals: approval(time.Second), Fail: map[string]int{"ship": 100}}, client.WorkflowFailed, "charged paid back"},
		"a charge fails":     {ddqtest.Play{Signals: approval(time.Hour), Fail: map[string]int{"charge": 2}}, client.WorkflowDone, "charged shipped"},
		"a worker dies":      {ddqtest.Play{Signals: approval(time.Hour), Crash: map[string]int{"charge": 1}}, client.WorkflowDone, "charged charged shipped"},
		"somebody thinks it": {ddqtest.Play{CancelAfter: time.Minute}, client.WorkflowCancelled, "charged paid back"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shop{}
			test.play.Workflow, test.play.Steps = order(), s.steps()
			r := test.play.Run(t)
			if got := strings.Join(s.done, " "); r.State != test.state || got != test.done {
				t.Errorf("it is %v, and was %q; want %v and %q: %+v", r.State, got, test.state, test.done, r.Steps)
			}
		})
	}
}

// TestAFunctionIsPlayed has a step call others and wait for a signal, in another topic than its own.
func TestAFunctionIsPlayed(t *testing.T) {
	charges := 0
	w := client.Workflow{Topic: "orders", ID: "order-17", Steps: []client.Step{
		{Name: "order"}, {Name: "mail", Task: client.Task{Topic: "mail"}, After: client.After("order")},
	}}
	steps := worker.Steps{
		"order": func(ctx context.Context, t worker.Task) error {
			if _, err := t.Once(ctx, "charge", func(context.Context) ([]byte, error) { charges++; return nil, nil }); err != nil {
				return err
			}
			packed, err := t.Call(ctx, "pack", client.Task{Payload: []byte("book")}, client.Task{Payload: []byte("anvil")})
			if err != nil {
				return err
			}
			by, err := t.Await(ctx, "approve", 0)
			if err != nil {
				return err
			}
			return t.SetResult(fmt.Appendf(nil, "%v %v %s", packed[0].State, packed[1].State, by))
		},
		"pack": func(_ context.Context, t worker.Task) error {
			if string(t.Payload) == "anvil" {
				return worker.Permanent(errors.New("too heavy"))
			}
			return nil
		},
		"mail": func(_ context.Context, t worker.Task) error { return t.SetResult(t.ResultOf("order")) },
	}
	r := ddqtest.Play{
		Workflow: w, Steps: steps, Crash: map[string]int{"order": 1},
		Signals: []ddqtest.Signal{{After: 3 * time.Hour, Signal: client.Signal{Name: "approve", Payload: []byte("ada")}}},
	}.Run(t)
	if r.State != client.WorkflowDone || string(r.Result) != "done failed ada" || charges != 1 {
		t.Errorf("it is %v with %q, and charged %d times", r.State, r.Result, charges)
	}
	if r.Took < 3*time.Hour || r.Took > 3*time.Hour+time.Minute {
		t.Errorf("it took %v", r.Took)
	}
	if s := r.Step("order.pack-2"); s.State != client.StepFailed || !strings.Contains(s.Error, "too heavy") {
		t.Errorf("the anvil is %+v", s)
	}
}
