package workflows

import (
	"strings"
	"time"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// endedSteps are the names of steps of which every copy is over.
func endedSteps(steps []*ddqv1.StepStatus) map[string]bool {
	ended := make(map[string]bool)
	for _, s := range steps {
		over := s.GetState() != ddqv1.StepState_STEP_STATE_WAITING && s.GetState() != ddqv1.StepState_STEP_STATE_MADE
		if was, seen := ended[s.GetName()]; seen {
			over = over && was
		}
		ended[s.GetName()] = over
	}
	return ended
}

// why says what a step waits for, or why it ended as it did.
func why(s *ddqv1.StepStatus, ended map[string]bool, paused bool, now time.Time) string {
	switch s.GetState() {
	case ddqv1.StepState_STEP_STATE_WAITING:
		return whyWaiting(s, ended, paused)
	case ddqv1.StepState_STEP_STATE_MADE:
		return whyOpen(s, now)
	}
	text := frame.StateText(s.GetReason())
	if b := s.GetBecauseOf(); b != "" {
		text += " because of " + frame.Cut(b)
	}
	if e := s.GetError(); e != "" {
		text += ": " + frame.Cut(e)
	}
	return strings.TrimPrefix(text, ": ")
}

func whyWaiting(s *ddqv1.StepStatus, ended map[string]bool, paused bool) string {
	var open []string
	for _, a := range s.GetAfter() {
		if over, known := ended[a.GetStep()]; known && !over {
			open = append(open, a.GetStep())
		}
	}
	switch {
	case len(open) > 0:
		return "waits for " + strings.Join(open, ", ")
	case paused:
		return "the workflow is paused"
	case s.GetCopy() > 0:
		return "waits for its turn among its copies"
	}
	return "is about to be made"
}

func whyOpen(s *ddqv1.StepStatus, now time.Time) string {
	switch {
	case s.GetSignal() != "" && s.GetUntil() != nil:
		return "waits for signal " + s.GetSignal() + ", at most until " + frame.AwayText(s.GetUntil(), now)
	case s.GetSignal() != "":
		return "waits for signal " + s.GetSignal()
	case s.GetKind() == ddqv1.StepKind_STEP_KIND_WAIT:
		return "is over " + frame.AwayText(s.GetUntil(), now)
	case s.GetKind() == ddqv1.StepKind_STEP_KIND_CHILD:
		return "its child is open"
	case s.GetBegunAt() != nil:
		return "its task began " + frame.AwayText(s.GetBegunAt(), now)
	}
	return "its task waits for a worker or its due time"
}
