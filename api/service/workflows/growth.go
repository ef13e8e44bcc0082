package workflows

import (
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

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
