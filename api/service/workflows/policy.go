package workflows

import (
	"cmp"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// DefaultMax is how many workflows of a topic may be open where it does not say.
const DefaultMax = 1_000_000

// CheckPolicy refuses what no topic may say of its workflows.
func CheckPolicy(p *store.WorkflowPolicy) *problem.Error {
	bounds := []problem.Bound{problem.Count("policy.max_workflows", "max-workflows", p.Max, 0, actors.MaxTasks)}
	if p.Retention != 0 {
		bounds = append(bounds, problem.Span("policy.workflow_retention_ms", "workflow-retention", p.Retention, graph.MinRetention, graph.MaxTime))
	}
	return problem.FirstInvalid(bounds)
}

// Policy is what a topic says of its workflows, with the defaults where it says nothing.
func Policy(t *store.Topic) (retention time.Duration, most int) {
	return cmp.Or(t.Workflows.Retention, workflow.DefaultRetention), cmp.Or(t.Workflows.Max, DefaultMax)
}
