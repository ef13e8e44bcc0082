package schedules

import (
	"strings"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/schedule"
)

// inWorkflow is before the names of the fields of a workflow that a schedule starts.
const inWorkflow = "workflow."

// checkWorkflow checks what a run is that is a workflow.
func (n *Definition) checkWorkflow(tasks Tasks) *problem.Error {
	switch {
	case n.Audience != nil:
		return problem.BadField("audience", "BAD_POLICY", "audience goes with a task: each recipient gets one")
	case strings.Contains(n.Name, "/"):
		return problem.BadField("name", "BAD_NAME", "the name of a schedule that starts workflows has no '/': their ids begin with it")
	}
	n.Workflow = n.Workflow.In(n.Topic)
	return tasks.CheckFlow(inWorkflow, n.Workflow, n.Topic, len(n.Name)+schedule.FlowIDBytes)
}

// runField is the field that has what a run is.
func runField(s *schedule.Schedule) string {
	if s.Workflow != nil {
		return "workflow"
	}
	return "task"
}
