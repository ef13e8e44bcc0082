package workflows

import (
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/store"
)

// Say checks what the ack of a step of a topic adds to its workflow, and returns it as the
// workflow is told of it.
func Say(tasks Tasks, topic *store.Topic, g *graph.Growth) ([]byte, *problem.Error) {
	g = g.In(topic.Name)
	if err := g.CheckGrowth(); err != nil {
		return nil, errorOf(err)
	}
	err := eachTemplate("grow.", &graph.Definition{Steps: g.Steps}, topic.Name, func(field, _ string, t *graph.Template) *problem.Error {
		if err := checkTemplate(tasks, field, t); err != nil {
			return err
		}
		return fits(field, topic, t)
	})
	if err != nil {
		return nil, err
	}
	say, refused := g.Say()
	if refused != nil {
		return nil, errorOf(refused)
	}
	return say, nil
}
