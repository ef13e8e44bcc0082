package workflows

import (
	"google.golang.org/grpc"

	"github.com/ddq-io/ddq/api/ddqv1"
	"github.com/ddq-io/ddq/api/ui/frame"
)

// section finds what is on the pages, and does what their forms ask for.
type section struct {
	admin     ddqv1.AdminServiceClient
	workflows ddqv1.WorkflowServiceClient
}

// New returns the section, of the server at the other end of conn.
func New(conn grpc.ClientConnInterface) frame.Section {
	s := &section{admin: ddqv1.NewAdminServiceClient(conn), workflows: ddqv1.NewWorkflowServiceClient(conn)}
	return frame.Section{
		Pages: map[string]frame.Maker{
			"workflows": s.workflowList,
			"workflow":  s.workflow,
		},
		Actions: map[string]frame.Action{
			"workflow/cancel": s.cancelWorkflow,
			"workflow/retry":  s.retryWorkflow,
			"workflow/pause":  s.pauseWorkflow,
			"workflow/resume": s.resumeWorkflow,
			"workflow/skip":   s.skipStep,
		},
	}
}
