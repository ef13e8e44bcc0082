package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/tracing"
	"github.com/ddq-io/ddq/api/worker"
)

func done(context.Context, worker.Task) error { return nil }

func TestTaskThatIsDueSoonIsOneTrace(t *testing.T) {
	bubble(t, sdk.AlwaysSample(), func(r *rig) {
		caller := r.enqueue(client.Task{ID: "a", Delay: time.Minute})
		var within trace.SpanContext
		r.work(2*time.Minute, func(ctx context.Context, _ worker.Task) error {
			within = trace.SpanContextFromContext(ctx)
			time.Sleep(time.Second)
			return nil
		})
		send, process := r.named("send mail", 1)[0], r.named("process mail", 1)[0]
		if send.SpanKind() != trace.SpanKindProducer || send.Parent().SpanID() != caller.SpanID() || send.SpanContext().TraceID() != caller.TraceID() {
			r.Errorf("the send is %v under %v", send.SpanKind(), send.Parent())
		}
		if process.SpanKind() != trace.SpanKindConsumer || process.Parent().SpanID() != send.SpanContext().SpanID() || process.SpanContext().TraceID() != caller.TraceID() {
			r.Errorf("the process is %v under %v", process.SpanKind(), process.Parent())
		}
		if links := process.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != send.SpanContext().SpanID() {
			r.Errorf("links %v", links)
		}
		if within.SpanID() != process.SpanContext().SpanID() {
			r.Error("the handler is not in the span")
		}
		if d := process.EndTime().Sub(process.StartTime()); d != time.Second {
			r.Errorf("the span takes %v", d)
		}
		for span, op := range map[sdk.ReadOnlySpan]string{send: "send", process: "process"} {
			for key, want := range map[string]string{
				"messaging.system": "ddq", "messaging.destination.name": "mail", "messaging.message.id": "a", "messaging.operation.name": op, "messaging.operation.type": op,
			} {
				if got := value(span, key); got != want {
					r.Errorf("%s: %s is %q", op, key, got)
				}
			}
		}
	})
}

func TestTaskThatIsDueLaterIsTwoTracesWithALink(t *testing.T) {
	bubble(t, sdk.AlwaysSample(), func(r *rig) {
		before := time.Now()
		r.enqueue(client.Task{Delay: 2 * time.Minute}) // or a year: a minute is the most
		r.work(3*time.Minute, done)
		send, process := r.named("send mail", 1)[0], r.named("process mail", 1)[0]
		if process.Parent().IsValid() || process.SpanContext().TraceID() == send.SpanContext().TraceID() {
			r.Errorf("the process is in the trace of the send, under %v", process.Parent())
		}
		if links := process.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != send.SpanContext().SpanID() {
			r.Errorf("links %v", links)
		}
		created, err := time.Parse(time.RFC3339Nano, value(process, "ddq.created"))
		if err != nil || created.Sub(before).Abs() > time.Second {
			r.Errorf("created at %v, want about %v", created, before)
		}
	})
}

func TestAttemptsAreSiblings(t *testing.T) {
	bubble(t, sdk.AlwaysSample(), func(r *rig) {
		r.enqueue(client.Task{})
		r.work(time.Minute, func(_ context.Context, t worker.Task) error {
			if t.Attempt < 3 {
				return worker.RetryAfter(time.Second, errors.New("again"))
			}
			return nil
		})
		send := r.named("send mail", 1)[0]
		for i, span := range r.named("process mail", 3) {
			if span.Parent().SpanID() != send.SpanContext().SpanID() || value(span, "ddq.attempt") != fmt.Sprint(i+1) || (span.Status().Code == codes.Error) != (i < 2) {
				r.Errorf("attempt %d is under %v, with %v and status %v", i+1, span.Parent(), span.Attributes(), span.Status())
			}
		}
	})
}

// What the producer does not record, its worker does not record either.
func TestProducerDecidesWhatIsRecorded(t *testing.T) {
	bubble(t, sdk.NeverSample(), func(r *rig) {
		r.enqueue(client.Task{})
		r.enqueue(client.Task{Delay: 2 * time.Minute})
		var seen []string
		r.cfg.Provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(r.spans)) // records what begins a trace
		r.work(3*time.Minute, func(_ context.Context, t worker.Task) error {
			seen = append(seen, t.Trace.Parent)
			return nil
		})
		if len(seen) != 2 || !strings.HasSuffix(seen[0], "-00") || !strings.HasSuffix(seen[1], "-00") {
			r.Errorf("contexts %q", seen)
		}
		if spans := r.spans.Ended(); len(spans) != 0 {
			r.Errorf("recorded: %v", spans)
		}
	})
}

func TestTasksWithoutAContextBeginTraces(t *testing.T) {
	bubble(t, sdk.AlwaysSample(), func(r *rig) {
		_, err := r.Client.Client.Enqueue(r.Context(), client.Task{Topic: "mail"})
		must(r.T, err)
		r.work(time.Minute, done)
		if span := r.named("process mail", 1)[0]; span.Parent().IsValid() || len(span.Links()) > 0 {
			r.Errorf("it is under %v, with links %v", span.Parent(), span.Links())
		}
	})
}

func TestBatchIsOneSpan(t *testing.T) {
	bubble(t, sdk.AlwaysSample(), func(r *rig) {
		_, err := r.EnqueueBatch(r.Context(), []client.Task{{Topic: "mail"}, {Topic: "mail"}})
		must(r.T, err)
		r.work(time.Minute, done)
		send := r.named("send mail", 1)[0]
		if value(send, "messaging.batch.message_count") != "2" {
			r.Errorf("attributes %v", send.Attributes())
		}
		for _, span := range r.named("process mail", 2) {
			if span.Parent().SpanID() != send.SpanContext().SpanID() {
				r.Errorf("it is under %v", span.Parent())
			}
		}
	})
}

// What is enqueued with an ack comes from the handler's span.
func TestWhatAnAckEnqueuesIsInTheTrace(t *testing.T) {
	bubble(t, sdk.AlwaysSample(), func(r *rig) {
		r.enqueue(client.Task{ID: "first"})
		r.work(time.Minute, func(_ context.Context, t worker.Task) error {
			if t.ID == "first" {
				return t.Enqueue(client.Task{Topic: "mail"})
			}
			return nil
		})
		spans := r.named("process mail", 2)
		if spans[1].Parent().SpanID() != spans[0].SpanContext().SpanID() {
			r.Errorf("the next one is under %v", spans[1].Parent())
		}
	})
}

// Spans say of what kind a failure is, and nothing that a task has.
func TestSpansTellNoSecrets(t *testing.T) {
	const canary = "canary-7f3a"
	bubble(t, sdk.AlwaysSample(), func(r *rig) {
		for _, id := range []string{"fails", "late", "panics", "released"} {
			r.enqueue(client.Task{ID: id, Payload: []byte(canary), Attributes: map[string]string{"k": canary}, MaxRetries: new(0)})
		}
		if _, err := r.Enqueue(r.Context(), client.Task{Topic: "mail", ID: "fails", Payload: []byte(canary + "2")}); err == nil {
			r.Error("another task of the id is enqueued")
		}
		released := false
		r.work(time.Minute, func(_ context.Context, t worker.Task) error {
			_ = t.SetResult([]byte(canary))
			switch t.ID {
			case "fails":
				return errors.New(canary)
			case "late":
				return fmt.Errorf("%s: %w", canary, context.DeadlineExceeded)
			case "panics":
				panic(canary)
			}
			if released {
				return nil
			}
			released = true
			return worker.Release(0)
		})
		kinds := map[string]string{}
		for _, span := range r.spans.Ended() {
			if text := fmt.Sprintf("%+v %+v %+v %+v", span.Name(), span.Attributes(), span.Events(), span.Status()); strings.Contains(text, canary) {
				r.Errorf("a span has %s", text)
			}
			if kind := value(span, "error.type"); kind != "" {
				kinds[span.Name()+" "+value(span, "messaging.message.id")] = kind
			}
		}
		want := map[string]string{"process mail fails": "error", "process mail late": "timeout", "process mail panics": "panic", "send mail fails": "ID_CONFLICT"}
		if fmt.Sprint(kinds) != fmt.Sprint(want) {
			r.Errorf("failures %v, want %v", kinds, want)
		}
	})
}

// With Settle the end of an attempt is a span, from when the handler returned until the answer.
func TestSettlementsAreSpansWhereAskedFor(t *testing.T) {
	for _, settle := range []bool{false, true} {
		bubble(t, sdk.AlwaysSample(), func(r *rig) {
			r.cfg.Settle = settle
			r.enqueue(client.Task{ID: "a"})
			r.work(time.Minute, func(_ context.Context, t worker.Task) error {
				if t.Attempt == 1 {
					return worker.RetryAfter(time.Second, errors.New("again"))
				}
				return nil
			})
			if !settle {
				r.named("ack mail", 0)
				r.named("nack mail", 0)
				return
			}
			process := r.named("process mail", 2)
			for i, name := range []string{"nack", "ack"} {
				span := r.named(name+" mail", 1)[0]
				if span.SpanKind() != trace.SpanKindClient || span.Parent().SpanID() != process[i].SpanContext().SpanID() || span.StartTime().Before(process[i].EndTime().Add(-time.Second)) {
					r.Errorf("%s is %v under %v", name, span.SpanKind(), span.Parent())
				}
				if value(span, "messaging.operation.name") != name || value(span, "messaging.operation.type") != "settle" || value(span, "messaging.message.id") != "a" {
					r.Errorf("%s has %v", name, span.Attributes())
				}
			}
		})
	}
}

// What the producer does not record has no spans of settlements either, whatever the sampler of the worker.
func TestSettlementsOfUnrecordedAttemptsAreNoSpans(t *testing.T) {
	bubble(t, sdk.NeverSample(), func(r *rig) {
		r.enqueue(client.Task{})
		started := 0
		r.cfg.Settle = true
		r.cfg.Provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(r.spans), sdk.WithSampler(sdk.ParentBased(counting{&started}, sdk.WithRemoteParentNotSampled(counting{&started}), sdk.WithLocalParentNotSampled(counting{&started}))))
		r.work(time.Minute, done)
		if started != 1 {
			r.Errorf("%d spans are begun, want that of the attempt", started)
		}
	})
}

// counting is a sampler that counts what it drops, which is all.
type counting struct{ n *int }

func (c counting) ShouldSample(of sdk.SamplingParameters) sdk.SamplingResult {
	*c.n++
	return sdk.NeverSample().ShouldSample(of)
}

func (counting) Description() string { return "counting" }

// An attempt is kept with the trace of its span, if that is recorded.
func TestAttemptsAreKeptWithTheirTrace(t *testing.T) {
	for _, sampler := range []sdk.Sampler{sdk.AlwaysSample(), sdk.NeverSample()} {
		bubble(t, sampler, func(r *rig) {
			caller := r.enqueue(client.Task{ID: "a", MaxRetries: new(0)})
			r.work(time.Minute, func(context.Context, worker.Task) error { return errors.New("no") })
			task, err := r.Get(r.Context(), "mail", "a")
			must(r.T, err)
			want := ""
			if caller.IsSampled() {
				want = caller.TraceID().String()
			}
			if len(task.Attempts) != 1 || task.Attempts[0].TraceID != want {
				r.Errorf("attempts %+v, want the trace %q", task.Attempts, want)
			}
		})
	}
}

func TestNoSpanIsNoContext(t *testing.T) {
	if parent, state := tracing.Context(t.Context()); parent != "" || state != "" {
		t.Errorf("%q with %q", parent, state)
	}
}
