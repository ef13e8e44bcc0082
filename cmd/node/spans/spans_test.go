package spans

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/worker"
)

func done(context.Context, worker.Task) error { return nil }

func TestImmediateTaskIsOneTraceOfThreeSpans(t *testing.T) {
	bubble(t, 0, func(r *rig) {
		r.enqueue(client.Task{ID: "a"})
		r.work(time.Minute, done)
		send, deliver, process := r.named("send mail", 1)[0], r.named("deliver mail", 1)[0], r.named("process mail", 1)[0]
		if !below(deliver, send) || !below(process, deliver) || !linked(deliver, send) || !linked(process, send) || len(r.spans.Ended()) != 3 {
			r.Errorf("deliver is under %v with links %v, process under %v with links %v", deliver.Parent(), deliver.Links(), process.Parent(), process.Links())
		}
	})
}

func TestTaskThatIsDueLaterIsTwoTracesWithALink(t *testing.T) {
	bubble(t, 0, func(r *rig) {
		r.enqueue(client.Task{ID: "a", Delay: 2 * time.Minute}) // or a year: a minute is the most
		r.work(3*time.Minute, done)
		send, deliver, process := r.named("send mail", 1)[0], r.named("deliver mail", 1)[0], r.named("process mail", 1)[0]
		if deliver.Parent().IsValid() || deliver.SpanContext().TraceID() == send.SpanContext().TraceID() || !linked(deliver, send) || !below(process, deliver) || !linked(process, send) {
			r.Errorf("deliver is under %v with links %v, process under %v with links %v", deliver.Parent(), deliver.Links(), process.Parent(), process.Links())
		}
		if d := deliver.EndTime().Sub(deliver.StartTime()); d > time.Second || value(deliver, "ddq.created") == "" {
			r.Errorf("the delivery takes %v, with %v", d, deliver.Attributes())
		}
	})
}

// Whatever becomes of a delivery, the next one is its sibling.
func TestRetriesReleasesAndDeadLettersAreSiblings(t *testing.T) {
	bubble(t, 0, func(r *rig) {
		r.enqueue(client.Task{ID: "a", MaxRetries: new(1)})
		seen := 0
		r.work(5*time.Minute, func(context.Context, worker.Task) error {
			if seen++; seen == 1 {
				return worker.Release(time.Second)
			}
			return worker.RetryAfter(time.Second, errors.New("no"))
		})
		send, process := r.named("send mail", 1)[0], r.named("process mail", 3)
		for i, deliver := range r.named("deliver mail", 3) {
			if !below(deliver, send) || !below(process[i], deliver) || value(deliver, "ddq.attempt") != []string{"1", "1", "2"}[i] {
				r.Errorf("delivery %d is under %v, with %v", i, deliver.Parent(), deliver.Attributes())
			}
			if failed := process[i].Status().Code == codes.Error; failed != (i > 0) {
				r.Errorf("process %d failed: %v", i, failed)
			}
		}
		task, err := r.Get(r.Context(), "mail", "a")
		r.must(err)
		if task.State != client.StateDead {
			r.Fatalf("the task is %v", task.State)
		}
		for i, a := range task.Attempts {
			if a.TraceID != send.SpanContext().TraceID().String() || a.Due.IsZero() {
				r.Errorf("attempt %d is of the trace %q, due %v", i, a.TraceID, a.Due)
			}
		}
	})
}

// The worker that has the task goes away without a word: the delivery after it is another span, and the
// attempt has no trace.
func TestRedeliveryAfterAKillIsASpanOfItsOwn(t *testing.T) {
	bubble(t, 0, func(r *rig) {
		r.enqueue(client.Task{ID: "a"})
		doomed := r.dial()
		stream, err := ddqv1.NewDelayQueueServiceClient(doomed.Conn()).Subscribe(r.Context())
		r.must(err)
		r.must(stream.Send(&ddqv1.SubscribeRequest{Hello: &ddqv1.Hello{Topic: "mail", VisibilityTimeoutMs: 5000}, Credit: new(int32(1))}))
		for {
			frame, err := stream.Recv()
			r.must(err)
			if len(frame.Deliveries) > 0 {
				break
			}
		}
		r.must(doomed.Close())
		r.work(time.Minute, done)
		send := r.named("send mail", 1)[0]
		deliver := r.named("deliver mail", 2)
		for _, d := range deliver {
			if !below(d, send) {
				r.Errorf("a delivery is under %v", d.Parent())
			}
		}
		if !below(r.named("process mail", 1)[0], deliver[1]) {
			r.Error("the process is not below the second delivery")
		}
	})
}

// A step comes from the one whose end started it: with a link, and never in its trace.
func TestStepsAreLinkedToThoseThatStartedThem(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		_, err := r.Submit(r.Context(), client.Workflow{Topic: "mail", ID: "w", Steps: []client.Step{
			{Name: "a"}, {Name: "b", After: client.After("a")}, {Name: "c", After: client.After("b")},
		}})
		r.must(err)
		var mu sync.Mutex
		names := map[string]string{} // by the ids of tasks; guarded by mu
		r.work(time.Minute, func(_ context.Context, t worker.Task) error {
			mu.Lock()
			names[t.ID] = t.Step.Name
			mu.Unlock()
			if t.Step.Name == "a" {
				return t.Grow(client.Step{Name: "grown"})
			}
			return nil
		})
		process := map[string]sdk.ReadOnlySpan{}
		for _, span := range r.named("process mail", 4) {
			process[names[value(span, "messaging.message.id")]] = span
		}
		started := map[string]string{"a.grown": "a", "b": "a", "c": "b"}
		for _, deliver := range r.named("deliver mail", 4) {
			name := names[value(deliver, "messaging.message.id")]
			from := started[name]
			if deliver.Parent().IsValid() || !below(process[name], deliver) {
				r.Errorf("%s is under %v", name, deliver.Parent())
			}
			if from == "" && len(deliver.Links()) > 0 || from != "" && !linked(deliver, process[from]) {
				r.Errorf("%s has the links %v", name, deliver.Links())
			}
		}
	})
}

// A step that begins by a failure, or by the end of a child, is linked to the attempt that ended it.
func TestStepsAreLinkedToFailuresAndChildren(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		failed := []client.Condition{{Step: "a", On: client.OnFailed}}
		_, err := r.Submit(r.Context(), client.Workflow{Topic: "mail", ID: "w", Failure: client.CarryOn, Steps: []client.Step{
			{Name: "a"}, {Name: "b", After: failed, Child: &client.Workflow{Steps: []client.Step{{Name: "inner"}}}}, {Name: "c", After: client.After("b")},
		}})
		r.must(err)
		var mu sync.Mutex
		names := map[string]string{} // by the ids of tasks; guarded by mu
		r.work(time.Minute, func(_ context.Context, t worker.Task) error {
			mu.Lock()
			names[t.ID] = t.Step.Name
			mu.Unlock()
			if t.Step.Name == "a" {
				return worker.Permanent(errors.New("no"))
			}
			return nil
		})
		process, deliver := map[string]sdk.ReadOnlySpan{}, map[string]sdk.ReadOnlySpan{}
		for _, span := range r.named("process mail", 3) {
			process[names[value(span, "messaging.message.id")]] = span
		}
		for _, span := range r.named("deliver mail", 3) {
			deliver[names[value(span, "messaging.message.id")]] = span
		}
		if !linked(deliver["c"], process["inner"]) {
			r.Errorf("the step after the child has the links %v", deliver["c"].Links())
		}
	})
	bubble(t, 1, func(r *rig) {
		_, err := r.Submit(r.Context(), client.Workflow{Topic: "mail", ID: "w", Failure: client.CarryOn, Steps: []client.Step{
			{Name: "a"}, {Name: "b", After: []client.Condition{{Step: "a", On: client.OnFailed}}},
		}})
		r.must(err)
		r.work(time.Minute, func(_ context.Context, t worker.Task) error {
			switch {
			case t.Step.Name == "b":
				return nil
			case t.Attempt == 1:
				return worker.RetryAfter(time.Second, errors.New("again"))
			}
			return worker.Permanent(errors.New("no"))
		})
		attempts, deliver := r.named("process mail", 3), r.named("deliver mail", 3)
		if !linked(deliver[2], attempts[1]) {
			r.Errorf("the step after the failure has the links %v, want its last attempt %v", deliver[2].Links(), attempts[1].SpanContext())
		}
	})
}

// A run of a schedule has no producer: its delivery begins a trace, and says which run it is.
func TestRunOfAScheduleIsATraceOfItsOwn(t *testing.T) {
	bubble(t, 1, func(r *rig) {
		_, err := r.PutSchedule(r.Context(), client.Schedule{Topic: "mail", Name: "nightly", Every: time.Minute})
		r.must(err)
		r.work(90*time.Second, done)
		deliver, process := r.named("deliver mail", 1)[0], r.named("process mail", 1)[0]
		if deliver.Parent().IsValid() || len(deliver.Links()) > 0 || !below(process, deliver) {
			r.Errorf("deliver is under %v with links %v, process under %v", deliver.Parent(), deliver.Links(), process.Parent())
		}
		if value(deliver, "ddq.schedule") != "nightly" || value(deliver, "ddq.occurrence") == "" {
			r.Errorf("it has %v", deliver.Attributes())
		}
	})
}
