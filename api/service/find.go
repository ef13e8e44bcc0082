package service

import (
	"context"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// Finder looks for the tasks of a topic by what they are.
type Finder struct {
	node   *actors.Node
	store  store.Reader
	limits *limits
	look   *lookup
	why    *explainer
	reads  *taskReader
}

// Find pages through the tasks of a topic that a filter matches; states of it that
// are not live bring in done and dead ones. A page may have fewer tasks than size and
// still be followed by more. Like List it says what tasks that are due wait for.
func (s *Finder) Find(ctx context.Context, topic string, f TaskFilter, size int, token string) (tasks []Found, next string, err error) {
	tasks, next, err = s.matching(ctx, topic, f, size, token)
	if err != nil {
		return nil, "", err
	}
	return tasks, next, problem.AsError(s.why.explain(ctx, tasks))
}

// matching is Find for those who count the tasks only.
func (s *Finder) matching(ctx context.Context, topic string, f TaskFilter, size int, token string) (tasks []Found, next string, err error) {
	if err := s.limits.checkFilter(&f); err != nil {
		return nil, "", err
	}
	if len(f.Attributes) > 0 {
		return s.look.walk(ctx, topic, make([]store.Kind, 1), size, token, f.matches, func(ctx context.Context, t *store.Topic, shard store.Shard, _ store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
			return s.reads.byAttributes(t, &f, f.kinds()).page(ctx, shard, cursor, limit)
		})
	}
	return s.look.walk(ctx, topic, f.kinds(), size, token, f.matches, func(ctx context.Context, _ *store.Topic, shard store.Shard, kind store.Kind, cursor string, limit int) ([]store.Snapshot, string, error) {
		if kind != store.KindPending {
			return s.store.List(ctx, shard, kind, cursor, limit)
		}
		return s.reads.pendingPage(ctx, shard, &f, cursor, limit)
	})
}

// List pages through the tasks of a topic in one state; StateUnknown lists all
// live ones. A page may have fewer tasks than size and still be followed by more.
func (s *Finder) List(ctx context.Context, topic string, state store.State, size int, token string) (tasks []Found, next string, err error) {
	kinds := []store.Kind{store.KindPending, store.KindRunning}
	switch state {
	case store.StateScheduled, store.StateReady, store.StateRetrying:
		kinds = kinds[:1]
	case store.StateRunning:
		kinds = kinds[1:]
	case store.StateDone:
		kinds = []store.Kind{store.KindDone}
	case store.StateDead, store.StateExpired:
		kinds = []store.Kind{store.KindDead}
	}
	tasks, next, err = s.look.page(ctx, topic, kinds, size, token, func(f *store.Snapshot) bool {
		return state == store.StateUnknown || f.State == state
	})
	if err != nil {
		return nil, "", err
	}
	return tasks, next, problem.AsError(s.why.explain(ctx, tasks))
}
