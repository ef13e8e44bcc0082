// Package scope says of which namespace a call is: whose topics and audiences it lists, and where it
// searches for what is named by an id alone. What names a topic names it in full, and needs no scope.
package scope

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
)

type key struct{}

// With returns a context of calls in a namespace.
func With(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, key{}, namespace)
}

// all is no name of a namespace.
const all = "*"

// All returns a context of calls in every namespace: those of the server itself.
func All(ctx context.Context) context.Context { return With(ctx, all) }

// Of returns the namespace of a call: the default one unless the context says another.
func Of(ctx context.Context) string {
	if namespace, said := ctx.Value(key{}).(string); said {
		return namespace
	}
	return store.DefaultNamespace
}

// Has reports whether a topic or an audience is in the namespace of a call.
func Has(ctx context.Context, full string) bool { return in(Of(ctx), full) }

func in(scope, full string) bool {
	namespace, _ := store.SplitName(full)
	return scope == all || namespace == scope
}

// Topics returns those of topics that are in the namespace of a call, in the same order.
func Topics(ctx context.Context, topics []store.Topic) []store.Topic {
	scope := Of(ctx)
	foreign := func(t store.Topic) bool { return !in(scope, t.Name) }
	if !slices.ContainsFunc(topics, foreign) {
		return topics
	}
	return slices.DeleteFunc(slices.Clone(topics), foreign)
}
