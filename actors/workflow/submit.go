package workflow

import "github.com/ddq-io/ddq/actors/workflow/graph"

// Submit returns a new workflow, and what it takes to begin it.
func Submit(id string, life uint64, d *graph.Definition, env Env) (*Workflow, Effects) {
	after, out, _ := Apply(New(id, life, d, env.Now), nil, env) // nobody's event is refused
	return after, out
}
