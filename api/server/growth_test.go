package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ddq-io/ddq/api/ddqv1"
)

// grown acks the first step of order-17 with growth.
func grown(g *ddqv1.Growth) func(r *rig) error {
	return ordered(func(r *rig) error { return r.finish(r.take("orders"), func(a *ddqv1.Ack) { a.Grow = g }) })
}

// steps are steps that do nothing.
func steps(names ...string) (all []*ddqv1.Step) {
	for _, name := range names {
		all = append(all, &ddqv1.Step{Name: name})
	}
	return all
}

var growthRefusals = []refusal{
	{"growth by a task that is no step", func(r *rig) error {
		_, err := r.queue.Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "orders"})
		must(r, err)
		return r.finish(r.take("orders"), func(a *ddqv1.Ack) { a.Grow = &ddqv1.Growth{Steps: steps("a")} })
	}, codes.FailedPrecondition, "NO_STEP", "task_id", "", 0},
	{"growth by a task of a schedule", func(r *rig) error {
		must(r, put(func(s *ddqv1.Schedule) { s.Topic = "orders" })(r))
		_, err := r.schedules.TriggerSchedule(r.Context(), &ddqv1.TriggerScheduleRequest{Topic: "orders", Name: "nightly"})
		must(r, err)
		return r.finish(r.take("orders"), func(a *ddqv1.Ack) { a.Grow = &ddqv1.Growth{Steps: steps("a")} })
	}, codes.FailedPrecondition, "NO_STEP", "task_id", "", 0},
	{"growth by a stale token", ordered(func(r *rig) error {
		d := r.take("orders")
		_, err := r.queue.Nack(r.Context(), &ddqv1.NackRequest{Topic: "orders", Nack: &ddqv1.Nack{TaskId: d.Task.Id, HoldToken: d.HoldToken}})
		must(r, err)
		return r.finish(d, func(a *ddqv1.Ack) { a.Grow = &ddqv1.Growth{Steps: steps("a")} })
	}), codes.FailedPrecondition, "HOLD_LOST", "hold_token", "", 0},
	{"grown steps of one name", grown(&ddqv1.Growth{Steps: steps("a", "a")}), codes.InvalidArgument, "BAD_GRAPH", "grow.steps[1].name", "", 0},
	{"grown step of a bad name", grown(&ddqv1.Growth{Steps: steps("a.b")}), codes.InvalidArgument, "BAD_GRAPH", "grow.steps[0].name", "", 0},
	{"grown step behind one of the workflow", grown(&ddqv1.Growth{Steps: []*ddqv1.Step{{Name: "a", After: []*ddqv1.After{{Step: "ship"}}}}}),
		codes.InvalidArgument, "BAD_GRAPH", "grow.steps[0].after[0]", "", 0},
	{"grown steps in a circle", grown(&ddqv1.Growth{Steps: []*ddqv1.Step{{Name: "a", After: []*ddqv1.After{{Step: "b"}}}, {Name: "b", After: []*ddqv1.After{{Step: "a"}}}}}),
		codes.InvalidArgument, "BAD_GRAPH", "grow.steps[0].after[0]", "", 0},
	{"grown wait for nothing", grown(&ddqv1.Growth{Steps: []*ddqv1.Step{{Name: "a", Does: &ddqv1.Step_Wait{Wait: &ddqv1.Wait{}}}}}),
		codes.InvalidArgument, "BAD_WAIT", "grow.steps[0].wait", "", 0},
	{"grown step of bad priority", grown(&ddqv1.Growth{Steps: []*ddqv1.Step{{Name: "a", Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Priority: 10}}}}}),
		codes.InvalidArgument, "OUT_OF_RANGE_FIELD", "grow.steps[0].task.priority", "", 0},
	{"grown step too large for the topic", func(r *rig) error {
		most := int64(3)
		must(r, created("orders", &ddqv1.TopicPolicy{MaxPayloadBytes: &most})(r))
		return grown(&ddqv1.Growth{Steps: []*ddqv1.Step{{Name: "a", Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Payload: []byte("four")}}}}})(r)
	}, codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "grow.steps[0].task.payload", "", 0},
	{"step of a grown child too large for its topic", func(r *rig) error {
		must(r, created("mail", &ddqv1.TopicPolicy{MaxPayloadBytes: proto.Int64(3)})(r))
		four := &ddqv1.Step{Name: "b", Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Payload: []byte("four")}}}
		return grown(&ddqv1.Growth{Steps: []*ddqv1.Step{{Name: "a", Does: &ddqv1.Step_Child{Child: &ddqv1.Workflow{Topic: "mail", Steps: []*ddqv1.Step{four}}}}}})(r)
	}, codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "grow.steps[0].child.steps[0].task.payload", "", 0},
	{"grown step too large for another topic", func(r *rig) error {
		must(r, created("mail", &ddqv1.TopicPolicy{MaxPayloadBytes: proto.Int64(3)})(r))
		return grown(&ddqv1.Growth{Steps: []*ddqv1.Step{{Name: "a", Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Topic: "mail", Payload: []byte("four")}}}}})(r)
	}, codes.InvalidArgument, "PAYLOAD_TOO_LARGE", "grow.steps[0].task.payload", "", 0},
	{"1,001 grown steps", grown(&ddqv1.Growth{Steps: steps(numbered(1001)...)}), codes.InvalidArgument, "BAD_GRAPH", "grow.steps", "", 0},
	{"growth over 1 MiB", grown(&ddqv1.Growth{Steps: []*ddqv1.Step{large("a"), large("b")}}), codes.InvalidArgument, "BAD_GRAPH", "grow", "", 0},
	{"an input over 256 KiB for the next start", grown(&ddqv1.Growth{Again: make([]byte, 256<<10+1)}), codes.InvalidArgument, "BAD_GRAPH", "grow.again", "", 0},
	{"a step that waits for nothing", grown(&ddqv1.Growth{Suspend: true}), codes.InvalidArgument, "BAD_GRAPH", "grow.suspend", "", 0},
	{"a step that goes on and begins the workflow again", grown(&ddqv1.Growth{Suspend: true, Steps: steps("a"), Again: []byte("x")}), codes.InvalidArgument, "BAD_GRAPH", "grow.again", "", 0},
	{"a task that is no step goes on", func(r *rig) error {
		_, err := r.queue.Enqueue(r.Context(), &ddqv1.EnqueueRequest{Topic: "orders"})
		must(r, err)
		return r.finish(r.take("orders"), func(a *ddqv1.Ack) { a.Grow = &ddqv1.Growth{Suspend: true, Steps: steps("a")} })
	}, codes.FailedPrecondition, "NO_STEP", "task_id", "", 0},
	{"a name that was grown before", ordered(func(r *rig) error {
		suspend := func(a *ddqv1.Ack) { a.Grow = &ddqv1.Growth{Suspend: true, Steps: steps("a")} }
		must(r, r.finish(r.take("orders"), suspend))
		must(r, r.finish(r.take("orders"), func(*ddqv1.Ack) {}))
		return r.finish(r.take("orders"), suspend)
	}), codes.InvalidArgument, "BAD_GRAPH", "grow.steps[0].name", "", 0},
	{"a step without a name left out", grown(&ddqv1.Growth{Skip: []string{"ship", ""}}), codes.InvalidArgument, "BAD_GRAPH", "grow.skip[1]", "", 0},
}

func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("page", i)
	}
	return names
}

func large(name string) *ddqv1.Step {
	return &ddqv1.Step{Name: name, Does: &ddqv1.Step_Task{Task: &ddqv1.TaskTemplate{Payload: make([]byte, 600<<10)}}}
}

func TestEveryRefusalOfGrowthHasItsCodeAndDetails(t *testing.T) { testRefusals(t, growthRefusals) }

// A refused ack leaves its task held: the worker may ack it without growth.
func TestTaskStaysHeldWhenItsGrowthIsRefused(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, submitted(nil)(r))
		d := r.take("orders")
		if err := r.finish(d, func(a *ddqv1.Ack) { a.Grow = &ddqv1.Growth{Steps: steps("a", "a")} }); err == nil {
			r.Fatal("two steps of one name are taken")
		}
		must(r, r.finish(d, func(*ddqv1.Ack) {}))
	})
}

// TestCrawl has a step say which pages there are, pages say which are behind them, and another step
// wait for all of them.
func TestCrawl(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		_, err := r.workflows.SubmitWorkflow(r.Context(), &ddqv1.SubmitWorkflowRequest{Workflow: &ddqv1.Workflow{Topic: "orders", Id: "site", Steps: []*ddqv1.Step{
			{Name: "start"}, {Name: "unwanted", After: []*ddqv1.After{{Step: "start"}}}, {Name: "index", After: []*ddqv1.After{{Step: "start", Grown: true}}},
		}}})
		must(r, err)
		links := map[string][]string{"start": {"a", "b"}, "start.a": {"c"}}
		var seen []string
		for range 5 {
			d := r.take("orders")
			name := d.Task.Step.Name
			seen = append(seen, name)
			ack := &ddqv1.Ack{TaskId: d.Task.Id, HoldToken: d.HoldToken, Result: []byte(name)}
			if grows := links[name]; grows != nil {
				ack.Grow = &ddqv1.Growth{Steps: steps(grows...), Skip: []string{"unwanted"}}
				ack.Enqueue = []*ddqv1.EnqueueRequest{{Topic: "log", Payload: []byte(name)}}
			}
			if name == "index" {
				var pages []string
				for _, in := range d.Task.Inputs {
					pages = append(pages, string(in.Result))
				}
				if slices.Sort(pages); !slices.Equal(pages, []string{"start", "start.a", "start.a.c", "start.b"}) {
					r.Errorf("index gets %q", pages)
				}
			}
			done, err := r.queue.Settle(r.Context(), &ddqv1.SettleRequest{Topic: "orders", Acks: []*ddqv1.Ack{ack}})
			must(r, err)
			if len(done.Results) != 0 {
				r.Fatalf("the ack of %s: %v", name, done.Results)
			}
			again, err := r.queue.Settle(r.Context(), &ddqv1.SettleRequest{Topic: "orders", Acks: []*ddqv1.Ack{ack}})
			if must(r, err); again.Results[0].GetError().GetReason() != "" {
				r.Errorf("the ack of %s again: %v", name, again.Results)
			}
		}
		if last := seen[4]; last != "index" {
			r.Errorf("done in this order: %q", seen)
		}
		ended, err := r.workflows.WaitWorkflow(r.Context(), &ddqv1.WaitWorkflowRequest{Id: "site", WaitMs: 10_000})
		must(r, err)
		if s := ended.GetStatus(); s.GetState() != ddqv1.WorkflowState_WORKFLOW_STATE_DONE || s.GetSteps().GetDone() != 5 || s.GetSteps().GetSkipped() != 1 {
			r.Errorf("it ended as %v", ended)
		}
		time.Sleep(time.Second)
		if logged := r.take("log"); !strings.HasPrefix(string(logged.Task.Payload), "start") {
			r.Errorf("the log has %v", logged)
		}
	})
}

// A workflow that grows over its bound fails, and tells why: the step that said so is done.
func TestAWorkflowThatGrowsTooLargeFails(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		must(r, submitted(func(w *ddqv1.Workflow) { w.Undo, w.Steps[2].Copies = true, proto.Int32(9_500) })(r))
		d := r.take("orders")
		must(r, r.finish(d, func(a *ddqv1.Ack) { a.Grow = &ddqv1.Growth{Steps: steps(numbered(1000)...)} }))
		undo := r.take("orders")
		if undo.Task.GetStep().GetName() != "charge" {
			r.Fatalf("the failure undoes %v", undo.Task)
		}
		must(r, r.finish(undo, func(*ddqv1.Ack) {}))
		ended, err := r.workflows.WaitWorkflow(r.Context(), &ddqv1.WaitWorkflowRequest{Id: "order-17", WaitMs: 10_000})
		must(r, err)
		s := ended.GetStatus()
		if s.GetState() != ddqv1.WorkflowState_WORKFLOW_STATE_FAILED || s.GetCause() != ddqv1.WorkflowCause_WORKFLOW_CAUSE_TOO_MANY_STEPS || s.GetSteps().GetSkipped() != 9_500 {
			r.Errorf("it ended as %v", ended)
		}
	})
}

// A workflow begins again with what an ack says, until one says nothing.
func TestWorkflowBeginsAgain(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		_, err := r.workflows.SubmitWorkflow(r.Context(), &ddqv1.SubmitWorkflowRequest{Workflow: &ddqv1.Workflow{Topic: "orders", Id: "loop", Input: []byte("1"), Steps: []*ddqv1.Step{{Name: "turn", Input: true}}}})
		must(r, err)
		for _, next := range []string{"2", "3", ""} {
			d := r.take("orders")
			must(r, r.finish(d, func(a *ddqv1.Ack) {
				a.Result = d.Task.Step.Input
				if next != "" {
					a.Grow = &ddqv1.Growth{Again: []byte(next)}
				}
			}))
		}
		time.Sleep(time.Second)
		ended, err := r.workflows.GetWorkflow(r.Context(), &ddqv1.GetWorkflowRequest{Id: "loop"})
		must(r, err)
		if s := ended.GetStatus(); s.GetState() != ddqv1.WorkflowState_WORKFLOW_STATE_DONE || s.GetStarts() != 3 || string(s.GetResult()) != "3" {
			r.Errorf("it ended as %v", ended)
		}
	})
}

// Whoever grows a workflow makes tasks, and needs to be allowed to; to leave a step out is the
// worker's to say.
func TestGrowthIsForThoseWhoMayEnqueue(t *testing.T) {
	guardedBubble(t, func(r *guardedRig) {
		_, err := ddqv1.NewWorkflowServiceClient(r.conn).SubmitWorkflow(r.as(r.root), &ddqv1.SubmitWorkflowRequest{Workflow: order(nil)})
		if err != nil {
			t.Fatal(err)
		}
		worker, _ := r.token(0, "worker:orders")
		got, err := r.queue.Retrieve(r.as(worker), &ddqv1.RetrieveRequest{Topic: "orders", WaitMs: 10_000})
		if err != nil || len(got.Deliveries) != 1 {
			t.Fatal(got, err)
		}
		ack := &ddqv1.Ack{TaskId: got.Deliveries[0].Task.Id, HoldToken: got.Deliveries[0].HoldToken}
		for i, g := range []*ddqv1.Growth{{Steps: steps("a")}, {Again: []byte{}}, {Suspend: true, Steps: steps("a")}, {Skip: []string{"ship"}}} {
			ack.Grow = g
			_, err := r.queue.Ack(r.as(worker), &ddqv1.AckRequest{Topic: "orders", Ack: ack})
			if want := []codes.Code{codes.PermissionDenied, codes.PermissionDenied, codes.PermissionDenied, codes.OK}[i]; status.Code(err) != want {
				t.Errorf("growth %v: %v, want %v", g, err, want)
			}
		}
	})
}
