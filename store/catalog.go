package store

import "context"

// Catalog keeps the topics' configurations. Any node may call it; versions decide between
// those who change a topic at once.
type Catalog interface {
	// PutTopic stores t when the topic's version is t.Version (0: it must be
	// absent) and returns it with the next version. ErrVersion, also when the topic
	// is gone; ErrTopicExists.
	PutTopic(ctx context.Context, t Topic) (Topic, error)

	// GetTopic returns ErrTopicNotFound for an unknown topic.
	GetTopic(ctx context.Context, name string) (Topic, error)

	// ListTopics returns every topic, by name.
	ListTopics(ctx context.Context) ([]Topic, error)

	// DeleteTopic removes the configuration only. ErrTopicNotFound, also when the topic
	// of that name has another life by now.
	DeleteTopic(ctx context.Context, name string, life uint64) error
}
