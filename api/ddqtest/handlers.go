package ddqtest

import (
	"context"

	"github.com/ddq-io/ddq/api/client"
	"github.com/ddq-io/ddq/api/worker"
)

// handlers are the steps of the play, with the failures that are asked for.
func (p *Play) handlers() worker.Steps {
	all := make(worker.Steps, len(p.Steps))
	for name, handle := range p.Steps {
		fail, crash := p.Fail[name], p.Crash[name]
		all[name] = func(ctx context.Context, t worker.Task) error {
			if t.Attempt <= fail {
				return ErrAsked
			}
			err := handle(ctx, t)
			if t.Attempt <= fail+crash {
				return ErrAsked
			}
			return err
		}
	}
	return all
}

// topicsOf are those in which a workflow has tasks.
func topicsOf(w *client.Workflow) []string {
	seen := map[string]bool{w.Topic: true}
	addTopics(seen, w)
	all := make([]string, 0, len(seen))
	for topic := range seen {
		all = append(all, topic)
	}
	return all
}

func addTopics(seen map[string]bool, w *client.Workflow) {
	for i := range w.Steps {
		s := &w.Steps[i]
		if s.Task.Topic != "" {
			seen[s.Task.Topic] = true
		}
		if s.Undo != nil && s.Undo.Topic != "" {
			seen[s.Undo.Topic] = true
		}
		if s.Child != nil {
			if s.Child.Topic != "" {
				seen[s.Child.Topic] = true
			}
			addTopics(seen, s.Child)
		}
	}
}
