package upkeep

import (
	"context"
	"errors"

	"github.com/ddq-io/ddq/store"
)

// FollowTopics applies what other nodes changed. It does nothing that could take
// long: a change is effective on every node within two seconds.
func (s *Upkeep) FollowTopics(ctx context.Context) {
	err := s.node.Clocks().Read(ctx)
	topics, e := s.store.ListTopics(ctx)
	if err = errors.Join(err, e); e == nil {
		s.node.Topics().CloseReplaced(ctx, topics)
	}
	for i := range topics {
		ref, open := s.node.Topics().Opened(topics[i].Name)
		if !open || *ref.Config() == topics[i] {
			continue
		}
		// The list may be older than what was changed here since, so it is asked again.
		if e := s.node.Topics().Refresh(ctx, topics[i].Name); !errors.Is(e, store.ErrTopicNotFound) { // see CloseReplaced
			err = errors.Join(err, e)
		}
	}
	s.noteIncomplete(ctx, err)
}
