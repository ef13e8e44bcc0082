package steps

import (
	"cmp"
	"context"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Steps tells the tasks of workflows from others: what becomes of those is the workflow's to say. Its
// methods are safe for concurrent use.
type Steps struct {
	Store store.Reader
	// Has reports whether a topic has a workflow, open or ended.
	Has func(ctx context.Context, topic, id string) (bool, *problem.Error)
}

// isStep reports whether a task of a topic is of a workflow that is there.
func (s *Steps) isStep(ctx context.Context, topic string, t *store.Task) (bool, *problem.Error) {
	if t.StepOf == nil {
		return false, nil
	}
	return s.Has(ctx, cmp.Or(t.StepOf.Topic, topic), t.StepOf.Workflow)
}

// Refuse refuses to do what call says to tasks of a topic of which one is a step's.
func (s *Steps) Refuse(ctx context.Context, t *store.Topic, call string, ids ...string) *problem.Error {
	ids = mayBeSteps(ids)
	if len(ids) == 0 {
		return nil
	}
	for _, span := range t.Spans() {
		for _, id := range ids {
			_, found, err := s.Store.Get(ctx, place.In(t, span, id), []string{id})
			if err != nil {
				return problem.FromStore(err)
			}
			owned, e := s.isStep(ctx, t.Name, &found[0].Task)
			if e != nil {
				return e
			}
			if owned {
				of := found[0].StepOf
				return problem.StepOfWorkflow(id, of.Name, of.Workflow, cmp.Or(of.Topic, t.Name), call)
			}
		}
	}
	return nil
}

// Without leaves out tasks of a shard that are steps'.
func (s *Steps) Without(ctx context.Context, shard store.Shard, ids []string) ([]string, *problem.Error) {
	some := mayBeSteps(ids)
	if len(some) == 0 {
		return ids, nil
	}
	_, found, err := store.GetAll(ctx, s.Store, shard, some)
	if err != nil {
		return nil, problem.FromStore(err)
	}
	owned, e := s.Owned(ctx, shard.Topic, found)
	if e != nil {
		return nil, e
	}
	left := make([]string, 0, len(ids))
	for _, id := range ids {
		if !owned[id] {
			left = append(left, id)
		}
	}
	return left, nil
}

// Owned are those of the tasks of a topic that are steps', by id.
func (s *Steps) Owned(ctx context.Context, topic string, tasks []store.Snapshot) (map[string]bool, *problem.Error) {
	type flow struct{ topic, id string }
	known, owned := make(map[flow]bool), make(map[string]bool)
	for i := range tasks {
		t := &tasks[i].Task
		if t.StepOf == nil {
			continue
		}
		of := flow{t.StepOf.Topic, t.StepOf.Workflow}
		there, asked := known[of]
		if !asked {
			var e *problem.Error
			if there, e = s.isStep(ctx, topic, t); e != nil {
				return nil, e
			}
			known[of] = there
		}
		if there {
			owned[t.ID] = true
		}
	}
	return owned, nil
}

// mayBeSteps are those of ids that tasks of steps may have: others need not be looked at.
func mayBeSteps(ids []string) (some []string) {
	for _, id := range ids {
		if place.IsKeyedID(id) {
			some = append(some, id)
		}
	}
	return some
}
