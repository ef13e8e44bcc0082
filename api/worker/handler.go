package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Handler does what a task asks for. Its context ends when the task's hold is
// lost, when its cancellation was asked for, or when the worker has waited long
// enough at its end; context.Cause says which. Handle is called concurrently.
type Handler interface {
	Handle(ctx context.Context, t Task) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, t Task) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, t Task) error { return f(ctx, t) }

// Middleware puts something around a Handler.
type Middleware func(Handler) Handler

func wrap(h Handler, all []Middleware) Handler {
	for _, m := range slices.Backward(all) {
		h = m(h)
	}
	return h
}

// ByAttribute returns a handler for a topic with tasks of several kinds: it calls the one
// under the value of the task's attribute. A task whose value has no handler fails, as with
// any error: it is tried again, perhaps by a worker that knows the kind, and is a dead
// letter in the end.
func ByAttribute(name string, handlers map[string]Handler) Handler {
	handlers = maps.Clone(handlers)
	return HandlerFunc(func(ctx context.Context, t Task) error {
		h, ok := handlers[t.Attributes[name]]
		if !ok {
			return fmt.Errorf("no handler for tasks with %s %q", name, t.Attributes[name])
		}
		return h.Handle(ctx, t)
	})
}

// Mux hands tasks to the handler of their topic. A Worker with a Mux takes
// tasks of all its topics. Its handlers share the worker's concurrency, and there are no
// weights: tasks run in the order in which they come, so a busy topic may take every place.
// Topics that must not wait for each other have a Worker each. Add all handlers before
// making the Worker.
type Mux struct {
	handlers map[string]Handler
}

// NewMux returns a Mux without topics.
func NewMux() *Mux { return &Mux{handlers: make(map[string]Handler)} }

// Add makes h the handler of topic.
func (m *Mux) Add(topic string, h Handler) { m.handlers[topic] = h }

// AddFunc makes f the handler of topic.
func (m *Mux) AddFunc(topic string, f func(context.Context, Task) error) {
	m.Add(topic, HandlerFunc(f))
}

// Handle calls the handler of t's topic.
func (m *Mux) Handle(ctx context.Context, t Task) error {
	h, ok := m.handlers[t.Topic]
	if !ok {
		return fmt.Errorf("no handler for topic %q", t.Topic)
	}
	return h.Handle(ctx, t)
}

func (m *Mux) topics() []string { return slices.Sorted(maps.Keys(m.handlers)) }
