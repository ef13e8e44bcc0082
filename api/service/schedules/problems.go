package schedules

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

func noSchedule(name string) *problem.Error {
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_SCHEDULE", Field: "name", Message: fmt.Sprintf("no schedule %q", name)}
}

// errBusy is of a schedule that others change faster than this call can.
func errBusy(name string) *problem.Error {
	return &problem.Error{Kind: problem.Unavailable, Reason: "SCHEDULE_BUSY", Message: fmt.Sprintf("schedule %q is changed by others all the time", name),
		RetryAfter: problem.RetrySoon}
}

// refusal is what a step of a schedule refused of what was asked, or nil.
func refusal(name string, out *schedule.Effects) *problem.Error {
	switch {
	case out.RunOpen != "":
		return errRunOpen(name, out.RunOpen)
	case out.Full:
		return errFull(name)
	case out.Over:
		return errFinished(name)
	}
	return nil
}

func errRunOpen(name, id string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "RUN_OPEN", Field: "overlap", State: store.StateRunning, ID: id,
		Message: fmt.Sprintf("a run of schedule %q is open: task %s", name, id)}
}

func errFull(name string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "BUFFER_FULL", Field: "overlap",
		Message: fmt.Sprintf("schedule %q has %d runs that are open, or that wait, and takes no more", name, schedule.MaxWaiting)}
}

func errFinished(name string) *problem.Error {
	return &problem.Error{Kind: problem.Precondition, Reason: "SCHEDULE_FINISHED", Field: "name",
		Message: fmt.Sprintf("schedule %q is finished: no occurrence is left", name)}
}

func versionMismatch(s *schedule.Schedule) *problem.Error {
	return &problem.Error{Kind: problem.Aborted, Reason: "VERSION_MISMATCH", Field: "if_version", Version: versionOf(s),
		Message: fmt.Sprintf("schedule %q is at version %d", s.Name, versionOf(s))}
}
