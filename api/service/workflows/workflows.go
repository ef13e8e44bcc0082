package workflows

import (
	"context"
	"errors"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/actors/workflow/graph"
	"github.com/ddq-io/ddq/actors/workflow/refusal"
	"github.com/ddq-io/ddq/api/service/quota"
	"github.com/ddq-io/ddq/store"
)

// Workflows is what is done with workflows. Its methods are safe for concurrent use, and return
// *problem.Error.
type Workflows struct {
	node   *actors.Node
	kept   *access.Access // nil: the store keeps no cells
	limits *actors.Limits
	topics Topics
	tasks  Tasks
	quota  *quota.Quota
}

// Topics are those to look in: one by name, or all where it is empty.
type Topics func(ctx context.Context, name string) ([]store.Topic, *problem.Error)

// Tasks is what is done for the tasks of steps as for all others.
type Tasks interface {
	// Check checks what a task brings, as an enqueue does.
	Check(t *store.Task, expireAfter time.Duration) *problem.Error
	// Cancel has the worker of a task end it.
	Cancel(ctx context.Context, topic *actors.Topic, id string) *problem.Error
	// Outbox refuses what may leave a parcel, when its topic has too many.
	Outbox(ctx context.Context, topic *store.Topic) *problem.Error
	// Enter lets a task into a topic with a backlog cap. leave is to be called once the
	// call is answered.
	Enter(ctx context.Context, topic *store.Topic) (leave func(), err *problem.Error)
}

// New returns the use cases of workflows of a node.
func New(of *actors.Node, topics Topics, tasks Tasks) *Workflows {
	s := &Workflows{node: of, limits: &of.Config().Limits, topics: topics, tasks: tasks, quota: &quota.Quota{Share: quotaShare}}
	if cells := of.Cells(); cells != nil {
		s.kept = &access.Access{Store: cells, Node: &node{of, tasks}}
	}
	return s
}

// ready refuses calls that cannot be carried out here.
func (s *Workflows) ready() *problem.Error {
	if s.kept == nil {
		return &problem.Error{Kind: problem.Precondition, Reason: "NO_CELLS", Message: "the store of this server keeps no workflows"}
	}
	return s.node.Serving()
}

// sealedTries is how often a call is made that met a topic while that got other shards.
const sealedTries = 3

// at calls f for the topic of a workflow: the one that is named, or else the only one that has
// a workflow of that id.
func (s *Workflows) at(ctx context.Context, topic, id string, f func(t *store.Topic) error) *problem.Error {
	if err := s.ready(); err != nil {
		return err
	}
	if err := checkID(id); err != nil {
		return err
	}
	for try := 1; ; try++ {
		t, e := s.locate(ctx, topic, id)
		if e != nil {
			return e
		}
		err := f(t)
		if errors.Is(err, store.ErrSealed) && try < sealedTries {
			continue
		}
		return errorOf(err)
	}
}

func (s *Workflows) locate(ctx context.Context, topic, id string) (*store.Topic, *problem.Error) {
	topics, e := s.topics(ctx, topic)
	if e != nil {
		return nil, e
	}
	if topic != "" {
		return &topics[0], nil
	}
	var hit *store.Topic
	for i := range topics {
		switch _, _, err := s.kept.Get(ctx, &topics[i], id, false, false); {
		case isNone(err):
		case err != nil:
			return nil, errorOf(err)
		case hit != nil:
			return nil, &problem.Error{Kind: problem.Precondition, Reason: "AMBIGUOUS_ID", Field: "topic",
				Message: "workflows of this id are in topics " + hit.Name + " and " + topics[i].Name + "; name one"}
		default:
			hit = &topics[i]
		}
	}
	if hit == nil {
		return nil, noWorkflow(id)
	}
	return hit, nil
}

func isNone(err error) bool {
	var refused *refusal.Error
	return errors.As(err, &refused) && refused.Reason == refusal.NoWorkflow
}

// Get returns a workflow with its result and, if they are asked for, its steps in order.
func (s *Workflows) Get(ctx context.Context, topic, id string, steps bool) (status workflow.Status, units []workflow.StepStatus, err error) {
	if e := s.at(ctx, topic, id, func(t *store.Topic) (err error) {
		status, units, err = s.kept.Get(ctx, t, id, steps, true)
		return err
	}); e != nil {
		return status, nil, e
	}
	return status, units, nil
}

// Has reports whether a topic has a workflow, open or ended.
func (s *Workflows) Has(ctx context.Context, topic, id string) (bool, *problem.Error) {
	if s.kept == nil {
		return false, nil
	}
	topics, e := s.topics(ctx, topic)
	switch {
	case e != nil && e.Kind == problem.NotFound:
		return false, nil
	case e != nil:
		return false, e
	}
	_, _, err := s.kept.Get(ctx, &topics[0], id, false, false)
	if isNone(err) {
		return false, nil
	}
	return err == nil, errorOf(err)
}

// Definition returns a workflow as it was submitted.
func (s *Workflows) Definition(ctx context.Context, topic, id string) (d *graph.Definition, err error) {
	if e := s.at(ctx, topic, id, func(t *store.Topic) (err error) {
		d, err = s.kept.Definition(ctx, t, id)
		return err
	}); e != nil {
		return nil, e
	}
	return d, nil
}
