package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
	"github.com/ddq-io/ddq/cmd/node"
)

var largeSteps = flag.Int("workflow.steps", 1500, "how many steps the workflow of TestALargeWorkflow has, of which an ack adds 1,000")

// TestALargeWorkflow has many steps, as many as one may have with -workflow.steps 10000, of which an ack
// adds as many as one may. It ends, and can be looked at. One step more than there may be is refused.
func TestALargeWorkflow(t *testing.T) {
	const most, grown = 10_000, worker.MaxGrow
	all := *largeSteps
	n := startTestNode(t, func(c *node.Config) { c.Store = node.Embedded })
	ddq := on(t, n)
	c, err := client.Dial(n.GRPCAddr(), client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w := client.Workflow{Topic: "sites", ID: "large", Steps: []client.Step{{Name: "start"}}}
	for i := range all - grown - 2 {
		w.Steps = append(w.Steps, client.Step{Name: fmt.Sprint("page", i), After: client.After("start")})
	}
	w.Steps = append(w.Steps, client.Step{Name: "join", After: []client.Condition{{Step: "start", Grown: true}, {Step: "page0"}}})

	working, stop := context.WithCancel(t.Context())
	worked := make(chan error)
	go func() {
		worked <- worker.New(c.Conn(), worker.Config{Topic: "sites", Concurrency: 64}, worker.HandlerFunc(func(_ context.Context, t worker.Task) error {
			if t.Step.Name != "start" {
				return t.SetResult([]byte("seen"))
			}
			more := make([]client.Step, grown)
			for i := range more {
				more[i].Name = fmt.Sprint("more", i)
			}
			return t.Grow(more...)
		})).Run(working)
	}()
	began := time.Now()
	if _, err := c.Submit(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	submitted := time.Since(began)
	s, err := c.WaitWorkflow(t.Context(), "sites", "large", time.Minute)
	for !s.State.Ended() && time.Since(began) < 10*time.Minute { // a machine that stands still breaks a call
		s, err = c.WaitWorkflow(t.Context(), "sites", "large", time.Minute)
	}
	if err != nil || s.State != client.WorkflowDone || s.Done != all {
		t.Fatalf("it is %v with %d steps done, %v", s.State, s.Done, err)
	}
	t.Logf("submitted in %v, and ended %v after that", submitted, s.EndedAt.Sub(s.CreatedAt))
	stop()
	if err := <-worked; err != nil {
		t.Error(err)
	}

	looked := time.Now()
	got := ddq(exitOK, "workflow", "get", "large", "--graph", "--timeout", "2m")
	for _, want := range []string{fmt.Sprint(all, " done"), fmt.Sprintf("page0 to page%d [%d done]", all-grown-3, all-grown-2), "start.more0 to start.more999 [1000 done]", "join [done]"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("the graph has no %q: %.2000s", want, got.out)
		}
	}
	if got := ddq(exitOK, "workflow", "get", "large", "--dot", "--timeout", "2m"); !strings.Contains(got.out, `"start.more999" [`) {
		t.Errorf("dot: %.2000s", got.out)
	}
	if got := ddq(exitOK, "workflow", "steps", "large", "-o", "json", "--timeout", "2m"); strings.Count(got.out, "\n") != all {
		t.Errorf("there are %d steps: %.2000s", strings.Count(got.out, "\n"), got.out)
	}
	t.Logf("looked at three times in %v", time.Since(looked))

	before := len(w.Steps)
	w.ID, w.Steps = "larger", append(w.Steps, make([]client.Step, most+1-before)...)
	for i := before; i < len(w.Steps); i++ {
		w.Steps[i].Name = fmt.Sprint("page", i)
	}
	if _, err := c.Submit(t.Context(), w); err == nil || !strings.Contains(err.Error(), "TOO_MANY_STEPS") {
		t.Errorf("one of %d steps: %v", len(w.Steps), err)
	}
}
