package tasks

import (
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// section finds what is on the pages, and does what their forms ask for.
type section struct {
	queue      ddqv1.DelayQueueServiceClient
	admin      ddqv1.AdminServiceClient
	operations ddqv1.OperationServiceClient

	traces string // address of a trace, with TraceID in it; empty: none is known
}

// TraceID is where the id of a trace goes in the address of traces.
const TraceID = "{trace_id}"

// New returns the section, of the server at the other end of conn. traces is the address of a trace, with
// TraceID in it; empty: none is known.
func New(conn grpc.ClientConnInterface, traces string) frame.Section {
	s := &section{queue: ddqv1.NewDelayQueueServiceClient(conn), admin: ddqv1.NewAdminServiceClient(conn), operations: ddqv1.NewOperationServiceClient(conn), traces: traces}
	return frame.Section{
		Pages: map[string]frame.Maker{
			"tasks": s.tasks,
			"task":  s.task,
			"dead":  s.dead,

			"dead/groups": s.deadGroups,
		},
		Files: map[string]frame.Finder{"payload": s.download},
		Answers: map[string]frame.Maker{
			"dead/count":  s.countDead,
			"tasks/count": s.countTasks,
		},
		Actions: map[string]frame.Action{
			"task/promote":     s.promoteTask,
			"task/reschedule":  s.rescheduleTask,
			"task/edit":        s.editTask,
			"task/cancel":      s.cancelTask,
			"task/delete":      s.deleteTask,
			"task/requeue":     s.requeueTask,
			"dead/requeue":     s.requeueDead,
			"dead/delete":      s.deleteDead,
			"dead/dryrun":      s.dryRunDead,
			"tasks/delete":     s.deleteTasks,
			"tasks/reschedule": s.rescheduleTasks,
		},
	}
}
