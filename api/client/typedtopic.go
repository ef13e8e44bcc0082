package client

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/api/client/encoding"
)

// TypedTopic is a topic whose payloads are values of T. Producers and workers of a program
// share one; worker.HandlerOf is its other half. It holds no connection, and copies of it are
// the same.
type TypedTopic[T any] struct {
	Name     string
	Encoding encoding.Encoding[T] // JSON when nil
}

// TopicOf returns the topic of that name, whose payloads are JSON.
func TopicOf[T any](name string) TypedTopic[T] { return TypedTopic[T]{Name: name} }

// Option changes a task before it is enqueued. Any field of Task has one:
//
//	func(t *client.Task) { t.Priority = 9 }
type Option func(*Task)

// In has the task due in d, on the server's clock.
func In(d time.Duration) Option { return func(t *Task) { t.Delay = d } }

// At has the task due at that moment.
func At(due time.Time) Option { return func(t *Task) { t.Due = due } }

// WithID gives the task an ID, which makes its enqueue repeatable.
func WithID(id string) Option { return func(t *Task) { t.ID = id } }

// Enqueuer is what enqueues a task: a *Client, or a fake of a test.
type Enqueuer interface {
	Enqueue(context.Context, Task) (Receipt, error)
}

// Enqueue stores a task with value, as c does.
func (y TypedTopic[T]) Enqueue(ctx context.Context, c Enqueuer, value T, options ...Option) (Receipt, error) {
	task, err := y.Task(value, options...)
	if err != nil {
		return Receipt{Topic: task.Topic, ID: task.ID}, err
	}
	return c.Enqueue(ctx, task)
}

// Task returns a task with value, for a batch, a schedule, a workflow, or to be enqueued with
// the ack of another task. A value that cannot be written is ErrInvalid.
func (y TypedTopic[T]) Task(value T, options ...Option) (Task, error) {
	task := Task{Topic: y.Name}
	payload, err := y.encoding().Encode(value)
	if err != nil {
		e := invalid("payload", err.Error())
		e.cause = err
		return task, e
	}
	task.Payload = payload
	for _, change := range options {
		change(&task)
	}
	return task, nil
}

// Value returns what payload says, such as that of a Snapshot.
func (y TypedTopic[T]) Value(payload []byte) (T, error) { return y.encoding().Decode(payload) }

func (y TypedTopic[T]) encoding() encoding.Encoding[T] {
	if y.Encoding == nil {
		return encoding.JSON[T]{}
	}
	return y.Encoding
}
