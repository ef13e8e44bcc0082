package guard

import (
	"context"
	"fmt"

	"google.golang.org/grpc/metadata"

	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/api/access"
	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/service/scope"
	"github.com/ddq-io/ddq/store"
)

// namespaceKey is the metadata by which a call names its namespace.
const namespaceKey = "ddq-namespace"

// Enter returns a context of a call in the namespace that it names, or else in that of the context. It is for
// calls of which nobody asks who makes them.
func (g *Guard) Enter(ctx context.Context) (context.Context, error) {
	ctx, _, e := g.enter(ctx, nil)
	if e != nil {
		return ctx, e
	}
	return ctx, nil
}

// enter returns a context of a call in the namespace that it names, or else in that of its principal, and the
// principal there. Whoever may do nothing in a namespace is not told whether there is one.
func (g *Guard) enter(ctx context.Context, p *auth.Principal) (context.Context, *auth.Principal, *problem.Error) {
	if p != nil && p.Kind == auth.KindNode {
		return ctx, p, nil
	}
	name, said := scope.Of(ctx), metadata.ValueFromIncomingContext(ctx, namespaceKey)
	if p != nil {
		name = p.Namespace
	}
	switch {
	case len(said) > 1:
		return ctx, p, problem.BadField(namespaceKey, "BAD_NAME", "%s is there twice", namespaceKey)
	case len(said) == 1:
		name = said[0]
		if e := access.CheckNamespace(namespaceKey, name); e != nil {
			return ctx, p, e
		}
		if p != nil && !p.Enters(name) {
			return ctx, p, notInNamespace(name)
		}
	}
	if name == store.DefaultNamespace {
		return inDefault(ctx, p)
	}
	if e := g.known(ctx, p, name); e != nil {
		return ctx, p, e
	}
	if p != nil {
		p = p.In(name)
	}
	return scope.With(ctx, name), p, nil
}

// inDefault is enter for the default namespace, of which a context without one is.
func inDefault(ctx context.Context, p *auth.Principal) (context.Context, *auth.Principal, *problem.Error) {
	if scope.Of(ctx) != store.DefaultNamespace {
		ctx = scope.With(ctx, store.DefaultNamespace)
	}
	if p != nil {
		p = p.In(store.DefaultNamespace)
	}
	return ctx, p, nil
}

// known says that there is no such namespace: as if it were not allowed, to who may not list them all.
func (g *Guard) known(ctx context.Context, p *auth.Principal, name string) *problem.Error {
	known, e := false, (*problem.Error)(nil)
	if g.access != nil {
		known, e = g.access.Namespaces.Known(ctx, name)
	}
	switch {
	case e != nil || known:
		return e
	case p != nil && !p.Grants.AllowFleet(auth.Admin):
		return notInNamespace(name)
	}
	return &problem.Error{Kind: problem.NotFound, Reason: "NO_NAMESPACE", Field: namespaceKey, Message: fmt.Sprintf("no namespace %q", name)}
}

func notInNamespace(name string) *problem.Error {
	return &problem.Error{Kind: problem.Denied, Reason: "NOT_ALLOWED", Field: namespaceKey, Message: fmt.Sprintf("not allowed: namespace %q", name)}
}

// Full reports whether calls of a method use full names: those between nodes, and what is said of the shards of
// all namespaces together.
func (g *Guard) Full(method string) bool {
	rule := g.rules.Of(method)
	return rule == nil || rule.Verbs == auth.Node || rule.Where == auth.Public || rule.Everywhere()
}
