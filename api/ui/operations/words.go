package operations

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// doesText is what an operation does, in words.
func doesText(o *ddqv1.Operation) string {
	switch a := o.GetRequest().GetAction().(type) {
	case *ddqv1.StartOperationRequest_DeleteTasks:
		return onlyCounts(a.DeleteTasks.GetDryRun(), "delete tasks")
	case *ddqv1.StartOperationRequest_RescheduleTasks:
		return onlyCounts(a.RescheduleTasks.GetDryRun(), "reschedule tasks")
	case *ddqv1.StartOperationRequest_RequeueDeadLetters:
		return onlyCounts(a.RequeueDeadLetters.GetDryRun(), "requeue dead letters")
	case *ddqv1.StartOperationRequest_DeleteDeadLetters:
		return onlyCounts(a.DeleteDeadLetters.GetDryRun(), "delete dead letters")
	}
	return "not known here"
}

func onlyCounts(dry bool, what string) string {
	if dry {
		return what + ", only counted"
	}
	return what
}

// stateText is the state, with what comes next.
func stateText(o *ddqv1.Operation) string {
	text := frame.StateText(o.GetState())
	if o.GetStopping() && !ended(o) {
		text += ", stopping"
	}
	return text
}

// rateText is how many tasks are changed a second at most; empty for no bound.
func rateText(o *ddqv1.Operation) string {
	if n := o.GetRequest().GetRatePerS(); n > 0 {
		return frame.CountText(n)
	}
	return ""
}

func ended(o *ddqv1.Operation) bool { return o.GetEndedUnixMs() != 0 }

// instant is a time in Unix milliseconds; nil for 0.
func instant(ms int64) *timestamppb.Timestamp {
	if ms == 0 {
		return nil
	}
	return timestamppb.New(time.UnixMilli(ms))
}

// span is a time span as it is written; empty for none.
func span(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	return d.AsDuration().String()
}

// filterFacts are what tasks an operation is about, and where it moves them, by name.
func filterFacts(r *ddqv1.StartOperationRequest) [][2]string {
	switch a := r.GetAction().(type) {
	case *ddqv1.StartOperationRequest_DeleteTasks:
		return taskFacts(a.DeleteTasks.GetFilter())
	case *ddqv1.StartOperationRequest_RescheduleTasks:
		return append(taskFacts(a.RescheduleTasks.GetFilter()), whenFact(a.RescheduleTasks), [2]string{"spread over", span(a.RescheduleTasks.GetSpread())})
	case *ddqv1.StartOperationRequest_RequeueDeadLetters:
		return deadFacts(a.RequeueDeadLetters.GetFilter())
	case *ddqv1.StartOperationRequest_DeleteDeadLetters:
		return deadFacts(a.DeleteDeadLetters.GetFilter())
	}
	return nil
}

func taskFacts(f *ddqv1.TaskFilter) [][2]string {
	var states, attributes []string
	for _, s := range f.GetStates() {
		states = append(states, frame.StateText(s))
	}
	for _, a := range f.GetAttributes() {
		text := a.GetKey() + "=" + a.GetEquals()
		if _, equals := a.GetMatch().(*ddqv1.AttributeFilter_Equals); !equals {
			text = a.GetKey() + "=" + a.GetPrefix() + "*"
		}
		attributes = append(attributes, text)
	}
	at := func(ms int64) string { return frame.InstantText(instant(ms)) }
	return [][2]string{
		{"states", strings.Join(states, ", ")}, {"id begins with", f.GetIdPrefix()}, {"attributes", strings.Join(attributes, ", ")},
		{"due from", at(f.GetDueFromUnixMs())}, {"due before", at(f.GetDueBeforeUnixMs())},
		{"created from", at(f.GetCreatedFromUnixMs())}, {"created before", at(f.GetCreatedBeforeUnixMs())},
	}
}

func deadFacts(f *ddqv1.DeadLetterFilter) [][2]string {
	return [][2]string{
		{"reason", frame.StateText(f.GetReason())}, {"error contains", f.GetErrorContains()},
		{"dead after", frame.InstantText(instant(f.GetDeadAfterUnixMs()))}, {"dead before", frame.InstantText(instant(f.GetDeadBeforeUnixMs()))},
	}
}

// whenFact is where tasks are moved to.
func whenFact(a *ddqv1.OperationReschedule) [2]string {
	switch w := a.GetWhen().(type) {
	case *ddqv1.OperationReschedule_Delay:
		return [2]string{"due in", span(w.Delay)}
	case *ddqv1.OperationReschedule_ExecuteTime:
		return [2]string{"due at", frame.InstantText(w.ExecuteTime)}
	case *ddqv1.OperationReschedule_Shift:
		return [2]string{"moved by", span(w.Shift)}
	}
	return [2]string{}
}
