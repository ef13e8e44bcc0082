package service

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/steps"
	"github.com/ddq-io/ddq/api/service/tenants"
	"github.com/ddq-io/ddq/store"
)

// Tasks is what is done with one task, and the enqueue of many.
type Tasks struct {
	node   *actors.Node
	store  taskStore
	limits *limits
	look   *lookup
	why    *explainer
	outbox outbox
	steps  *steps.Steps

	tenants *tenants.Tenants
}

// Get returns a task with its history and its journal. With an empty topic every topic is searched; the same id in
// several is refused.
func (s *Tasks) Get(ctx context.Context, topic, id string) (Found, error) {
	f, err := s.look.find(ctx, topic, id)
	if err != nil {
		return Found{}, err
	}
	found := []Found{f}
	if err := s.why.explain(ctx, found); err != nil {
		return Found{}, problem.AsError(err)
	}
	if err := s.look.addJournal(ctx, &found[0]); err != nil {
		return Found{}, problem.AsError(err)
	}
	return s.look.withHistory(ctx, found[0])
}

// Delete removes a pending task and says where it was. With an empty topic every
// topic is searched. That of a workflow's step is refused. When an answer was lost on the
// way, another refusal says nothing: the try without an answer may have done it.
func (s *Tasks) Delete(ctx context.Context, topic, id string) (foundIn string, err error) {
	return s.delete(ctx, topic, id, false)
}

// ForceDelete is Delete also for the task of a workflow's step, which fails by that.
func (s *Tasks) ForceDelete(ctx context.Context, topic, id string) (foundIn string, err error) {
	return s.delete(ctx, topic, id, true)
}

func (s *Tasks) delete(ctx context.Context, topic, id string, force bool) (foundIn string, err error) {
	topic, e := s.look.locate(ctx, topic, id)
	if e != nil {
		return "", e
	}
	ref, e := s.node.Topics().Open(ctx, topic, false)
	if e != nil {
		return topic, e
	}
	if !force {
		if e := s.steps.Refuse(ctx, ref.Config(), "CancelWorkflow, or with force", id); e != nil {
			return topic, e
		}
	}
	for place, e := range places(ctx, s.node, ref, id) {
		if e != nil {
			return topic, e
		}
		var stamp store.Stamp
		var results []store.RemoveResult
		repeated, err := s.node.Resolve(ctx, func() (err error) {
			stamp, results, err = s.store.Remove(ctx, place, store.Removals(id))
			return err
		})
		if err != nil {
			return topic, problem.AsError(err)
		}
		switch r := results[0]; {
		case r.Status == store.OK:
			ref.Deleted(place.N, stamp.Seq, id)
			return topic, nil
		case repeated:
			return topic, problem.AsError(store.ErrUnknown)
		case r.Status != store.NotFound:
			return topic, problem.WrongState(id, r.State)
		}
	}
	return topic, problem.NoTask(id)
}
