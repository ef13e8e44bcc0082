package actors

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
)

// System is the runtime of one node: the plain methods that api/server calls.
// Errors are *Error throughout.
type System struct{}

// Enqueue stores tasks, of any topics, and answers each.
func (s *System) Enqueue(ctx context.Context, tasks []NewTask) []Enqueued { return nil }

// Get, Delete and Reschedule look in every topic when topic is empty.
func (s *System) Get(ctx context.Context, topic, id string) (Found, error) { return Found{}, nil }

func (s *System) Delete(ctx context.Context, topic, id string) (foundIn string, err error) {
	return "", nil
}

func (s *System) Reschedule(ctx context.Context, topic, id string, w When) (foundIn string, due store.Millis, err error) {
	return "", 0, nil
}

// List pages through the tasks of a topic in one state; StateUnknown lists all live ones.
func (s *System) List(ctx context.Context, topic string, state store.State, size int, token string) (tasks []Found, next string, err error) {
	return nil, "", nil
}

// Subscribe opens a subscription that hands deliveries to out. Unsubscribe ends it.
func (s *System) Subscribe(ctx context.Context, o SubscribeOptions, out Outbox) (*Subscription, error) {
	return nil, nil
}

// Subscription is one worker's standing request for one topic.
type Subscription struct {
	Options SubscribeOptions // as resolved
	Node    string
}

// Grant adds credit. An error means that n is out of range.
func (s *Subscription) Grant(n int) error { return nil }

// Settle asks for settlements; the outbox gets the results under the same sequence.
func (s *Subscription) Settle(sequence uint64, settlements []Settlement) {}

// Unsubscribe ends the subscription. undelivered are deliveries that the outbox
// took and never sent; their holds are released.
func (s *Subscription) Unsubscribe(undelivered []Delivery) {}

// Retrieve waits up to wait for due tasks and returns at most max, held.
func (s *System) Retrieve(ctx context.Context, o SubscribeOptions, max int, wait time.Duration) ([]Delivery, error) {
	return nil, nil
}

// Settle settles holds of a topic at any node and waits for the outcome.
func (s *System) Settle(ctx context.Context, topic string, settlements []Settlement) ([]Settled, error) {
	return nil, nil
}

func (s *System) CreateTopic(ctx context.Context, name string, c TopicChange) (store.Topic, error) {
	return store.Topic{}, nil
}

func (s *System) ConfigureTopic(ctx context.Context, name string, c TopicChange) (store.Topic, error) {
	return store.Topic{}, nil
}

func (s *System) DescribeTopic(ctx context.Context, name string) (TopicStatus, error) {
	return TopicStatus{}, nil
}

func (s *System) ListTopics(ctx context.Context, size int, token string) (topics []store.Topic, next string, err error) {
	return nil, "", nil
}

func (s *System) DeleteTopic(ctx context.Context, name string, force bool) error { return nil }

// PurgeTopic deletes the pending tasks and returns how many.
func (s *System) PurgeTopic(ctx context.Context, name string) (int64, error) { return 0, nil }

func (s *System) ListDead(ctx context.Context, topic string, f DeadFilter, size int, token string) (tasks []Found, next string, err error) {
	return nil, "", nil
}

// RequeueDead and DeleteDead act on ids, or with none on what the filter matches.
func (s *System) RequeueDead(ctx context.Context, topic string, ids []string, f DeadFilter) (n int64, missing []string, err error) {
	return 0, nil, nil
}

func (s *System) DeleteDead(ctx context.Context, topic string, ids []string, f DeadFilter) (n int64, missing []string, err error) {
	return 0, nil, nil
}

// Describe says what the node is and what is wrong with it.
func (s *System) Describe(ctx context.Context) (ServerStatus, error) { return ServerStatus{}, nil }

// Ready returns nil while the node serves, else why not.
func (s *System) Ready() error { return nil }
