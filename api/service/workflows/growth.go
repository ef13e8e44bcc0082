package workflows

import (
	"fmt"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// GrowsAnew refuses growth of steps that the one which is acked has grown already, and of an undo that
// would go on.
func GrowsAnew(step *store.StepOf, g *graph.Growth) *problem.Error {
	if g.Suspend && step.Undo {
		return problem.BadField("grow.suspend", "BAD_GRAPH", "grow.suspend is not for an undo, which is no step of its own")
	}
	if len(step.Inputs) == 0 {
		return nil
	}
	grown := make(map[string]bool, len(step.Inputs))
	for i := range step.Inputs {
		grown[step.Inputs[i].Step] = true
	}
	for i := range g.Steps {
		if name := graph.GrownName(step.Name, step.Copy, g.Steps[i].Name); grown[name] {
			field := fmt.Sprintf("grow.steps[%d].name", i)
			return problem.BadField(field, "BAD_GRAPH", "%s: the step has grown %q already", field, name)
		}
	}
	return nil
}

// Say checks what the ack of a step of a topic adds to its workflow, and returns it as the
// workflow is told of it. Steps that name no topic are in that of the task, which may be another one
// than the workflow's.
func Say(tasks Tasks, topic *store.Topic, open Opener, g *graph.Growth) ([]byte, *problem.Error) {
	g = g.In(topic.Name)
	if err := g.CheckGrowth(); err != nil {
		return nil, errorOf(err)
	}
	added := &graph.Definition{Steps: g.Steps}
	if err := checkTemplates(tasks, "grow.", added, topic.Name); err != nil {
		return nil, err
	}
	if err := FitsRun("grow.", added, topic, open); err != nil {
		return nil, err
	}
	say, refused := g.Say()
	if refused != nil {
		return nil, errorOf(refused)
	}
	return say, nil
}
