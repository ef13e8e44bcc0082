package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// lookup finds tasks by id, and reads the lists of topics.
type lookup struct {
	store interface {
		store.Reader
		store.Catalog
	}
	limits *limits
}

func (s *lookup) find(ctx context.Context, topic, id string) (Found, *problem.Error) {
	if err := s.limits.CheckID(id); err != nil {
		return Found{}, err
	}
	topics, e := s.topics(ctx, topic)
	if e != nil {
		return Found{}, e
	}
	var hit *Found
	for i := range topics {
		f, err := s.findIn(ctx, &topics[i], id)
		switch {
		case err != nil:
			return Found{}, problem.FromStore(err)
		case f == nil:
		case hit != nil:
			return Found{}, &problem.Error{Kind: problem.Precondition, Reason: "AMBIGUOUS_ID", Field: "topic",
				Message: "tasks of this id are in topics " + hit.Topic + " and " + f.Topic + "; name one"}
		default:
			hit = f
		}
	}
	if hit == nil {
		return Found{}, problem.NoTask(id)
	}
	return *hit, nil
}

// topics are those to look in: one by name, or all of the namespace of the call.
func (s *lookup) topics(ctx context.Context, topic string) ([]store.Topic, *problem.Error) {
	if topic == "" {
		topics, err := s.store.ListTopics(ctx)
		return scope.Topics(ctx, topics), problem.FromStore(err)
	}
	if err := actors.CheckTopicName("topic", topic); err != nil {
		return nil, err
	}
	t, err := s.store.GetTopic(ctx, topic)
	return []store.Topic{t}, problem.FromStore(err)
}

func (s *lookup) findIn(ctx context.Context, t *store.Topic, id string) (*Found, error) {
	for _, place := range place.Candidates(t, id) {
		_, found, err := s.store.Get(ctx, place, []string{id})
		if err != nil {
			return nil, err
		}
		if found[0].State != store.StateUnknown {
			f := foundIn(t, found[0])
			f.Shard = place
			return &f, nil
		}
	}
	return nil, nil
}

func foundIn(t *store.Topic, snap store.Snapshot) Found {
	return Found{Topic: t.Name, Snapshot: snap, MaxRetries: snap.Task.RetryLimit(t), limits: t.Limits}
}

// locate names the topic of a task. Where it was named, nothing is read: a server that
// was a primary until now may answer a read, and know nothing of the task, but no change.
func (s *lookup) locate(ctx context.Context, topic, id string) (string, *problem.Error) {
	if topic == "" {
		f, err := s.find(ctx, topic, id)
		return f.Topic, err
	}
	if err := s.limits.CheckID(id); err != nil {
		return "", err
	}
	return topic, actors.CheckTopicName("topic", topic)
}

// addJournal adds what handlers of a task did once, in the order in which that was kept.
func (s *lookup) addJournal(ctx context.Context, f *Found) (err error) {
	if f.State == store.StateDone {
		return nil
	}
	f.Journal, err = s.store.Journal(ctx, f.Shard, f.ID)
	f.Journal = f.Remembered()
	slices.SortFunc(f.Journal, func(a, b store.JournalEntry) int {
		return cmp.Or(cmp.Compare(a.Kept, b.Kept), cmp.Compare(a.Name, b.Name))
	})
	return err
}

// withHistory adds what a task's attempts left behind. What came after the task was
// found is left out.
func (s *lookup) withHistory(ctx context.Context, f Found) (Found, error) {
	all, err := s.store.History(ctx, f.Shard, []string{f.ID})
	if err != nil {
		return Found{}, problem.AsError(err)
	}
	f.History = all[0]
	if f.State.Live() {
		f.Result = nil
	}
	return f, nil
}
