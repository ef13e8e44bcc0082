package workflows

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/actors/workflow/access"
	"github.com/ddq-io/ddq/store"
)

// MaxSubmits is how many workflows one call submits at most.
const MaxSubmits = 100

// Submit stores a workflow, and makes the tasks that it begins with. The same again changes
// nothing. Its topic, and those of its steps, are created when they do not exist.
func (s *Workflows) Submit(ctx context.Context, n *Submit) (access.Submitted, error) {
	if err := s.ready(); err != nil {
		return access.Submitted{}, err
	}
	if err := n.check(s.tasks); err != nil {
		return access.Submitted{}, err
	}
	if n.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return access.Submitted{}, problem.Bug(err)
		}
		n.ID = id.String()
	}
	if e := s.node.AllTell(); e != nil {
		return access.Submitted{}, e
	}
	home, e := s.open(ctx, n)
	if e != nil {
		return access.Submitted{}, e
	}
	if e := s.tasks.Outbox(ctx, home); e != nil {
		return access.Submitted{}, e
	}
	leave, e := s.tasks.Enter(ctx, home)
	if e != nil {
		return access.Submitted{}, e
	}
	defer leave()
	if e := s.takeRoom(ctx, home); e != nil {
		return access.Submitted{}, e
	}
	return s.submit(ctx, home, n)
}

func (s *Workflows) submit(ctx context.Context, home *store.Topic, n *Submit) (access.Submitted, error) {
	for try := 1; ; try++ {
		done, err := s.kept.Submit(ctx, home, n.ID, &n.Definition)
		if !errors.Is(err, store.ErrSealed) || try == sealedTries {
			return done, plain(err)
		}
		fresh, e := s.topics(ctx, n.Topic) // it has other shards by now
		if e != nil {
			return access.Submitted{}, e
		}
		home = &fresh[0]
	}
}

// open returns the home of a workflow, and refuses what its topics would.
func (s *Workflows) open(ctx context.Context, n *Submit) (*store.Topic, *problem.Error) {
	open := OpenerOf(ctx, s.node, true)
	home, err := open(n.Topic)
	if err != nil {
		return nil, err
	}
	if home.EnqueuePaused {
		return nil, problem.EnqueuePaused(home.Name)
	}
	return home, FitsRun("", &n.Definition, home, open)
}

// OpenerOf opens topics of a node, and with create makes those that are missing where enqueues do.
func OpenerOf(ctx context.Context, node *actors.Node, create bool) Opener {
	return func(name string) (*store.Topic, *problem.Error) {
		ref, err := node.Topics().Open(ctx, name, create)
		switch {
		case err != nil && err.Kind == problem.NotFound && !create:
			return nil, nil
		case err != nil:
			return nil, err
		}
		t := *ref.Config()
		return &t, nil
	}
}
