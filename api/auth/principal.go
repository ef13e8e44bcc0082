package auth

import (
	"context"
	"slices"
	"time"
)

// Kind is how a principal showed who it is.
type Kind uint8

const (
	KindLocal       Kind = iota + 1 // by calling a server that listens on loopback only, without authentication
	KindRoot                        // by the root token
	KindToken                       // by a token that was made
	KindNode                        // as a node of the fleet
	KindCertificate                 // by a certificate of its connection
	KindIssuer                      // by a token of an issuer
)

var kindNames = [...]string{KindLocal: "local", KindRoot: "root", KindToken: "token", KindNode: "node", KindCertificate: "certificate", KindIssuer: "oidc"}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "unknown"
}

// Principal is who calls.
type Principal struct {
	Kind      Kind
	ID        string // of its token; may be empty
	Name      string // of the token or the node, or in a certificate; of an issuer's token who signed it and whose it is
	Namespace string
	Grants    Grants
	Expires   time.Time // zero: never

	// Makers are the ids of the tokens that its token comes from, each made by the one before. Names
	// can be anybody's. Of more than maxMakers these are the first and the last.
	Makers []string

	CallsPerSecond int // at each node; 0: no bound
	BytesPerSecond int // of payloads, at each node; 0: no bound

	// AnyNode is of a node whose certificate says that it is one, and not which.
	AnyNode bool
}

// Local is whoever calls a server without authentication.
func Local() *Principal { return everything(KindLocal, "local") }

// Root is the holder of the root token.
func Root() *Principal { return everything(KindRoot, "root") }

func everything(kind Kind, name string) *Principal {
	return &Principal{Kind: kind, Name: name, Namespace: DefaultNamespace, Grants: Grants{{grantable, All, All}}}
}

// Fellow is a node of the fleet: it may do what nodes do, and nothing else.
func Fellow(name string) *Principal {
	return &Principal{Kind: KindNode, Name: name, Namespace: DefaultNamespace, Grants: Grants{{Node, All, All}}}
}

// CertifiedNode is a node of the fleet that is known by its certificate.
func CertifiedNode(id *Identity) *Principal {
	p := Fellow(id.Name)
	p.Expires, p.AnyNode = id.Expires, true
	return p
}

// MayBe reports whether p may be the node of that name.
func (p *Principal) MayBe(node string) bool {
	return p.Kind == KindNode && (p.AnyNode || p.Name == node)
}

// Allow reports whether p may do one of the verbs to a topic of its namespace, by the name that the topic
// has there or by its full name.
func (p *Principal) Allow(any Verbs, topic string) bool {
	if p.Namespace != DefaultNamespace {
		if prefix := len(p.Namespace); len(topic) > prefix && topic[prefix] == '/' && topic[:prefix] == p.Namespace {
			topic = topic[prefix+1:]
		}
	}
	return p.Grants.Allow(any, p.Namespace, topic)
}

// MakersOfNext are the makers of a token that p makes.
func (p *Principal) MakersOfNext() []string {
	if p.Kind != KindToken {
		return nil
	}
	all := append(slices.Clone(p.Makers), p.ID)
	if over := len(all) - maxMakers; over > 0 {
		all = slices.Delete(all, maxMakers/2, maxMakers/2+over)
	}
	return all
}

// In is p as it calls in a namespace.
func (p *Principal) In(namespace string) *Principal {
	if p.Namespace == namespace {
		return p
	}
	in := *p
	in.Namespace = namespace
	return &in
}

// Enters reports whether p may do anything in a namespace.
func (p *Principal) Enters(namespace string) bool { return p.Grants.AllowSome(^Verbs(0), namespace) }

type principalKey struct{}

// With returns a context of calls by p.
func With(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From returns who calls; nil when nobody asked.
func From(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}
