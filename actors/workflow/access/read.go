package access

import (
	"context"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/store"
)

// Get returns a workflow and, if they are asked for, its steps in order. With result its
// own result is there, too.
func (a *Access) Get(ctx context.Context, topic *store.Topic, id string, steps, result bool) (workflow.Status, []workflow.StepStatus, error) {
	if !steps && !result {
		h, err := a.header(ctx, topic, id)
		if err != nil {
			return workflow.Status{}, nil, err
		}
		s, err := workflow.Read(h.cell)
		if err != nil {
			return workflow.Status{}, nil, err
		}
		return s.Status(topic.Name, topic.Workflows.Retention), nil, nil
	}
	at, err := a.find(ctx, topic, id)
	if err != nil {
		return workflow.Status{}, nil, err
	}
	status := at.status(topic)
	if result {
		if status.Result, err = a.value(ctx, at, at.Workflow.Result()); err != nil {
			return workflow.Status{}, nil, err
		}
	}
	if !steps {
		return status, nil, nil
	}
	return status, at.Workflow.StepStatuses(), nil
}

// value reads a value.
func (a *Access) value(ctx context.Context, at *located, v workflow.Value) ([]byte, error) {
	if v.Part == 0 {
		return v.Bytes, nil
	}
	values, err := Values(ctx, a.Store, at.shard, at.Workflow, []int64{v.Part})
	return values[v.Part], err
}

// Definition returns a workflow as it was submitted.
func (a *Access) Definition(ctx context.Context, topic *store.Topic, id string) (*graph.Definition, error) {
	at, err := a.find(ctx, topic, id)
	if err != nil {
		return nil, err
	}
	return at.Workflow.Def, nil
}

// Results returns what the units of a step returned, from a copy on. Next is the copy to go on
// with; 0: that is all.
func (a *Access) Results(ctx context.Context, topic *store.Topic, id, step string, from, limit int) (results []Result, next int, err error) {
	at, err := a.find(ctx, topic, id)
	if err != nil {
		return nil, 0, err
	}
	units, there := at.Workflow.UnitsOf(step)
	if !there {
		return nil, 0, &refusal.Error{Reason: refusal.NoStep, Field: "step", Message: "there is no step " + step}
	}
	bytes := 0
	for i := range units {
		u := &units[i]
		if u.Copy < from {
			continue
		}
		if len(results) == limit || bytes >= store.MaxBodies {
			return results, u.Copy, nil
		}
		value, err := a.value(ctx, at, u.Value)
		if err != nil {
			return nil, 0, err
		}
		bytes += len(value)
		results = append(results, Result{Step: step, Copy: u.Copy, State: u.State, Try: u.Try, Error: u.Error, Value: value})
	}
	return results, 0, nil
}

// List returns workflows of one shard, the newest first, behind a position in a list: that of
// the open ones and those of the ended ones by state. Next is where to go on; the zero Wake: that is all.
func (a *Access) List(ctx context.Context, shard store.Shard, list string, f Filter, after store.Wake, limit int) (found []workflow.Status, next store.Wake, err error) {
	cells, err := a.Store.Listed(ctx, shard, list, after, limit)
	if err != nil || len(cells) == 0 {
		return nil, store.Wake{}, err
	}
	for _, c := range cells {
		next = store.Wake{At: c.Listed, ID: c.ID}
		s, err := workflow.Read(c)
		if err != nil {
			continue // it is listed with those that cannot be read
		}
		if status := s.Status(shard.Topic, f.Retention); f.matches(&status) {
			found = append(found, status)
		}
	}
	return found, next, nil
}

func (f *Filter) matches(s *workflow.Status) bool {
	return (f.State == 0 || f.State == s.State) && (f.Name == "" || f.Name == s.Name) &&
		(f.Label == store.Attribute{} || slices.Contains(s.Labels, f.Label))
}

// waitPauses are those between looks of a call that waits.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// Wait returns a workflow once it has ended, with its result, and as it is when the wait is over.
func (a *Access) Wait(ctx context.Context, topic *store.Topic, id string, wait time.Duration) (workflow.Status, error) {
	over := time.NewTimer(wait)
	defer over.Stop()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		s, _, err := a.Get(ctx, topic, id, false, false)
		if err == nil && s.State == workflow.Done {
			s, _, err = a.Get(ctx, topic, id, false, true)
		}
		if err != nil || !s.State.Open() || wait == 0 {
			return s, err
		}
		select {
		case <-over.C:
			return s, nil
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(pause):
		}
	}
}
