package upkeep

import (
	"context"
	"errors"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/store"
)

// FollowTopics applies what other nodes changed. It does nothing that could take
// long: a change is effective on every node within two seconds.
func (s *Upkeep) FollowTopics(ctx context.Context) {
	err := s.node.Clocks().Follow(ctx)
	topics, e := s.store.ListTopics(ctx)
	if err = errors.Join(err, e); e == nil {
		err = errors.Join(err, s.apply(ctx, topics))
	}
	s.noteIncomplete(ctx, err)
}

// apply applies what the catalog has now.
func (s *Upkeep) apply(ctx context.Context, topics []store.Topic) (err error) {
	changed, gone := s.changes(topics)
	if len(changed) > 0 || gone {
		s.node.Topics().CloseReplaced(ctx, topics)
	}
	for _, name := range changed {
		// The list may be older than what was changed here since, so it is asked again.
		if e := s.node.Topics().Refresh(ctx, name); !errors.Is(e, store.ErrTopicNotFound) { // see CloseReplaced
			err = errors.Join(err, e)
		}
	}
	return err
}

// changes are the open topics that are not what they are here, and whether some are in the
// catalog no more. Mostly there are none.
func (s *Upkeep) changes(topics []store.Topic) (changed []string, gone bool) {
	open := 0
	s.node.Topics().Each(func(*actors.Topic) { open++ })
	for i := range topics {
		ref, there := s.node.Topics().Opened(topics[i].Name)
		if !there {
			continue
		}
		open--
		if *ref.Config() != s.node.Topics().Caps.Bounded(topics[i]) {
			changed = append(changed, topics[i].Name)
		}
	}
	return changed, open > 0
}
