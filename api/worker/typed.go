package worker

import (
	"context"
	"fmt"
	"reflect"

	"github.com/ddq-io/ddq/api/client"
)

// HandlerOf returns a handler for the tasks of topic: it gives f the value of the payload, and
// the task. A task whose payload has no such value is a dead letter at once, with the reason:
// no attempt can mend it.
func HandlerOf[T any](topic client.TypedTopic[T], f func(ctx context.Context, value T, t Task) error) Handler {
	return HandlerFunc(func(ctx context.Context, t Task) error {
		value, err := topic.Value(t.Payload)
		if err != nil {
			return Permanent(fmt.Errorf("payload is no %v: %w", reflect.TypeFor[T](), err))
		}
		return f(ctx, value, t)
	})
}

// Handle makes f, as HandlerOf does, the handler of topic in m.
func Handle[T any](m *Mux, topic client.TypedTopic[T], f func(ctx context.Context, value T, t Task) error) {
	m.Add(topic.Name, HandlerOf(topic, f))
}
