package workflows

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/service/workflows"
	"github.com/ddq-io/ddq/api/wire"
	"github.com/ddq-io/ddq/store"
)

// The values have the same order on the wire; the tables are what is true if one of them moves.
var (
	failureToWire = [...]ddqv1.FailurePolicy{
		graph.FinishRunning: ddqv1.FailurePolicy_FAILURE_POLICY_FINISH_RUNNING, graph.CancelRunning: ddqv1.FailurePolicy_FAILURE_POLICY_CANCEL_RUNNING,
		graph.CarryOn: ddqv1.FailurePolicy_FAILURE_POLICY_CARRY_ON,
	}
	onToWire = [...]ddqv1.On{graph.OnDone: ddqv1.On_ON_DONE, graph.OnFailed: ddqv1.On_ON_FAILED, graph.OnEnded: ddqv1.On_ON_ENDED}
)

// submitOf converts a workflow that is submitted.
func submitOf(w *ddqv1.Workflow) (*workflows.Submit, *problem.Error) {
	if w == nil {
		return nil, wire.Invalid(refusal.BadWorkflow, "workflow", "is required")
	}
	n := &workflows.Submit{Topic: w.GetTopic(), ID: w.GetId()}
	return n, readDefinition(&n.Definition, w, "")
}

// readDefinition reads what a workflow is, without its topic and id. at is before the names of
// its fields.
func readDefinition(d *graph.Definition, w *ddqv1.Workflow, at string) (e *problem.Error) {
	d.Name, d.Input, d.Undo, d.ResultOf = w.GetName(), w.GetInput(), w.GetUndo(), w.GetResultOf()
	_, d.Labels = wire.ReadAttributes(w.GetLabels(), nil)
	if d.Failure, e = orFirst[graph.Failure](failureToWire[:], w.GetFailure(), at+"failure"); e != nil {
		return e
	}
	if d.Timeout, e = wire.Span(w.GetTimeoutMs(), at+"timeout_ms"); e != nil {
		return e
	}
	if w.RetentionMs != nil {
		if d.Retention, e = wire.Span(w.GetRetentionMs(), at+"retention_ms"); e != nil {
			return e
		}
		if d.Retention == 0 { // which would be the topic's
			return wire.Invalid("OUT_OF_RANGE_FIELD", at+"retention_ms", "must be at least %d", graph.MinRetention.Milliseconds())
		}
	}
	d.Steps, e = readSteps(w.GetSteps(), at)
	return e
}

// ReadRun reads a workflow that a schedule starts. at is before the names of its fields.
func ReadRun(w *ddqv1.Workflow, at string) (*graph.Definition, *problem.Error) {
	switch {
	case w.GetId() != "":
		return nil, wire.Invalid(refusal.BadWorkflow, at+"id", "is made of the schedule's name and the time")
	case w.GetTopic() != "":
		return nil, wire.Invalid(refusal.BadWorkflow, at+"topic", "is that of the schedule")
	}
	d := &graph.Definition{}
	return d, readDefinition(d, w, at)
}

// RunWire converts a workflow that a schedule starts.
func RunWire(d *graph.Definition) *ddqv1.Workflow { return definitionWire("", "", d) }

// orFirst reads an enum whose unspecified value stands for the first.
func orFirst[V ~uint8, W ~int32](table []W, w W, field string) (V, *problem.Error) {
	if w == 0 {
		return 0, nil
	}
	return wire.ReadEnum[V](table, w, field)
}

func readSteps(from []*ddqv1.Step, at string) ([]graph.Step, *problem.Error) {
	steps := make([]graph.Step, len(from))
	for i, s := range from {
		if e := readStep(&steps[i], s, fmt.Sprintf("%ssteps[%d].", at, i)); e != nil {
			return nil, e
		}
	}
	return steps, nil
}

func readStep(s *graph.Step, w *ddqv1.Step, at string) (e *problem.Error) {
	s.Name, s.Need, s.CancelRest, s.AtATime = w.GetName(), int(w.GetNeed()), w.GetCancelRest(), int(w.GetAtATime())
	s.IgnoreFailure, s.Input = w.GetIgnoreFailure(), w.GetInput()
	if w != nil && w.Copies != nil {
		copies := int(w.GetCopies())
		s.Copies = &copies
	}
	for i, a := range w.GetAfter() {
		on, e := orFirst[graph.On](onToWire[:], a.GetOn(), fmt.Sprintf("%safter[%d].on", at, i))
		if e != nil {
			return e
		}
		s.After = append(s.After, graph.After{Step: a.GetStep(), On: on, Grown: a.GetGrown()})
	}
	switch does := w.GetDoes().(type) {
	case *ddqv1.Step_Wait:
		s.Wait, e = readWait(does.Wait, at+"wait.")
	case *ddqv1.Step_Child:
		s.Child = &graph.Child{Topic: does.Child.GetTopic()}
		if does.Child.GetId() != "" {
			return wire.Invalid(refusal.BadWorkflow, at+"child.id", "is made of the parent's and the step's")
		}
		e = readDefinition(&s.Child.Definition, does.Child, at+"child.")
	case *ddqv1.Step_Task:
		s.Task, e = readTemplate(does.Task, at+"task.")
	default: // a task that brings nothing
		s.Task, e = readTemplate(&ddqv1.TaskTemplate{}, at+"task.")
	}
	if e != nil || w.GetUndo() == nil {
		return e
	}
	s.Undo, e = readTemplate(w.GetUndo(), at+"undo.")
	return e
}

func readWait(w *ddqv1.Wait, at string) (_ *graph.Wait, e *problem.Error) {
	out := &graph.Wait{}
	switch what := w.GetWhat().(type) {
	case *ddqv1.Wait_DelayMs:
		out.Delay, e = wire.Span(what.DelayMs, at+"delay_ms")
	case *ddqv1.Wait_Until:
		out.Until, e = wire.Instant(what.Until, at+"until")
	case *ddqv1.Wait_Signal:
		out.Signal = what.Signal
	}
	if e != nil {
		return nil, e
	}
	if w != nil && w.Otherwise != nil {
		out.Otherwise = append([]byte{}, w.Otherwise...) // not nil, which would be none
	}
	out.Timeout, e = wire.Span(w.GetTimeoutMs(), at+"timeout_ms")
	return out, e
}

// contentsOf has what a template shares with a task that is enqueued.
func contentsOf(w *ddqv1.TaskTemplate) *ddqv1.EnqueueRequest {
	return &ddqv1.EnqueueRequest{
		Payload: w.GetPayload(), Attributes: w.GetAttributes(), Backoff: w.GetBackoff(),
		VisibilityTimeoutMs: w.GetVisibilityTimeoutMs(), HandlerTimeoutMs: w.GetHandlerTimeoutMs(),
		Priority: w.GetPriority(), FairnessKey: w.GetFairnessKey(), FairnessWeight: w.GetFairnessWeight(),
		RateKey: w.GetRateKey(), ConcurrencyKey: w.GetConcurrencyKey(),
	}
}

func readTemplate(w *ddqv1.TaskTemplate, at string) (*graph.Template, *problem.Error) {
	t := &graph.Template{Topic: w.GetTopic()}
	if _, e := wire.ReadContents(&t.Task, contentsOf(w), nil); e != nil {
		return nil, within(at, e)
	}
	t.Task.MaxRetries = -1
	if w.MaxRetries != nil {
		if w.GetMaxRetries() < 0 { // -1 would mean the topic's
			return nil, wire.Invalid("OUT_OF_RANGE_FIELD", at+"max_retries", "must not be negative")
		}
		t.Task.MaxRetries = int(w.GetMaxRetries())
	}
	var e *problem.Error
	if w.GetDelay() != nil {
		if t.Delay, e = wire.Delay(w.GetDelay(), at+"delay"); e != nil {
			return nil, e
		}
	}
	if w.GetExpireAfter() != nil {
		if t.ExpireAfter, e = wire.Delay(w.GetExpireAfter(), at+"expire_after"); e == nil && t.ExpireAfter == 0 { // 0 would mean never
			e = wire.Invalid("BAD_DELAY", at+"expire_after", "must be longer than 0")
		}
	}
	return t, e
}

func within(at string, e *problem.Error) *problem.Error {
	inner := *e
	inner.Field = at + e.Field
	return &inner
}

// SayFailed is what a nack tells the workflow of its task, should it be its end; nil for nothing.
func SayFailed(n *ddqv1.Nack) []byte {
	if n.GetTraceparent() == "" {
		return nil
	}
	trace, _ := wire.ReadTrace(n.GetTraceparent(), "")
	say, _ := (&graph.Growth{Trace: trace}).Say() // which has no bound to be over
	return say
}

// ReadGrowth reads what an ack adds to a workflow; nil for nothing.
func ReadGrowth(w *ddqv1.Growth) (*graph.Growth, *problem.Error) {
	if w == nil {
		return nil, nil
	}
	steps, e := readSteps(w.GetSteps(), "grow.")
	if e != nil {
		return nil, e
	}
	g := &graph.Growth{Steps: steps, Skip: w.GetSkip(), Suspend: w.GetSuspend()}
	g.Trace, _ = wire.ReadTrace(w.GetTraceparent(), "")
	if w.Again != nil {
		again := append([]byte{}, w.Again...)
		g.Again = &again
	}
	return g, nil
}

// GrowsIn are the topics in which growth makes tasks: that of the task that is acked, and those
// that its steps name. None where it only leaves steps out.
func GrowsIn(topic string, w *ddqv1.Growth) []string {
	if len(w.GetSteps()) == 0 && (w == nil || w.Again == nil) {
		return nil
	}
	return append(TopicsOf(w.GetSteps()), topic)
}

// TopicsOf are the topics that the steps of a workflow name, beside its own.
func TopicsOf(steps []*ddqv1.Step) (topics []string) {
	for _, s := range steps {
		for _, t := range [...]string{s.GetTask().GetTopic(), s.GetUndo().GetTopic(), s.GetChild().GetTopic()} {
			if t != "" {
				topics = append(topics, t)
			}
		}
		topics = append(topics, TopicsOf(s.GetChild().GetSteps())...)
	}
	return topics
}

// definitionWire converts a workflow as it was submitted.
func definitionWire(topic, id string, d *graph.Definition) *ddqv1.Workflow {
	w := &ddqv1.Workflow{
		Topic: topic, Id: id, Name: wire.Text(d.Name), Input: d.Input, Failure: wire.Enum(failureToWire[:], d.Failure),
		TimeoutMs: store.CeilMillis(d.Timeout), Labels: wire.PutAttributes(d.Labels), Undo: d.Undo, ResultOf: d.ResultOf,
	}
	if d.Retention > 0 {
		w.RetentionMs = new(store.CeilMillis(d.Retention))
	}
	for i := range d.Steps {
		w.Steps = append(w.Steps, stepWire(&d.Steps[i]))
	}
	return w
}

func stepWire(s *graph.Step) *ddqv1.Step {
	w := &ddqv1.Step{
		Name: s.Name, After: afterWire(s.After), Need: int32(s.Need), CancelRest: s.CancelRest, AtATime: int32(s.AtATime),
		IgnoreFailure: s.IgnoreFailure, Undo: templateWire(s.Undo), Input: s.Input,
	}
	if s.Copies != nil {
		w.Copies = new(int32(*s.Copies))
	}
	switch {
	case s.Wait != nil:
		w.Does = &ddqv1.Step_Wait{Wait: waitWire(s.Wait)}
	case s.Child != nil:
		w.Does = &ddqv1.Step_Child{Child: definitionWire(s.Child.Topic, "", &s.Child.Definition)}
	default:
		w.Does = &ddqv1.Step_Task{Task: templateWire(s.Task)}
	}
	return w
}

func afterWire(after []graph.After) (out []*ddqv1.After) {
	for _, a := range after {
		out = append(out, &ddqv1.After{Step: a.Step, On: wire.Enum(onToWire[:], a.On), Grown: a.Grown})
	}
	return out
}

func waitWire(from *graph.Wait) *ddqv1.Wait {
	w := &ddqv1.Wait{TimeoutMs: store.CeilMillis(from.Timeout), Otherwise: from.Otherwise}
	switch {
	case from.Signal != "":
		w.What = &ddqv1.Wait_Signal{Signal: from.Signal}
	case from.Until != 0:
		w.What = &ddqv1.Wait_Until{Until: wire.StampOrNil(from.Until)}
	default:
		w.What = &ddqv1.Wait_DelayMs{DelayMs: store.CeilMillis(from.Delay)}
	}
	return w
}

func templateWire(t *graph.Template) *ddqv1.TaskTemplate {
	if t == nil {
		return nil
	}
	w := &ddqv1.TaskTemplate{
		Topic: t.Topic, Payload: t.Task.Payload, Attributes: wire.PutAttributes(t.Task.Attributes), Backoff: wire.PutBackoff(t.Task.Backoff),
		VisibilityTimeoutMs: store.CeilMillis(t.Task.Visibility), HandlerTimeoutMs: store.CeilMillis(t.Task.HandlerTimeout),
		Delay: spanWire(t.Delay), ExpireAfter: spanWire(t.ExpireAfter),
	}
	if t.Task.MaxRetries >= 0 {
		w.MaxRetries = new(int32(t.Task.MaxRetries))
	}
	if r := t.Task.Traits; r != nil {
		w.Priority, w.FairnessKey, w.FairnessWeight = int32(r.Priority), r.FairnessKey, int32(r.FairnessWeight)
		w.RateKey, w.ConcurrencyKey = r.RateKey, r.ConcurrencyKey
	}
	return w
}
