package frame

import (
	"context"
	"fmt"
	"net/http"

	"github.com/ddq-io/ddq/api/auth"
	"github.com/ddq-io/ddq/api/ddqv1"
)

// Visitor is who looks at a page, and what they may do. It says what is offered to them; whether it
// is done, the server says.
type Visitor struct {
	Name      string
	Kind      string
	LoggedIn  bool
	Namespace string // whose topics they see
	grants    auth.Grants
}

// May is what a visitor may do where a page is about.
type May struct {
	Enqueue, Operate, Admin bool
}

type visitorKey struct{}

// Who is who makes a request; nobody before they are known.
func Who(ctx context.Context) *Visitor {
	if v, ok := ctx.Value(visitorKey{}).(*Visitor); ok {
		return v
	}
	return new(Visitor)
}

// On is what the visitor may do to a topic.
func (v *Visitor) On(topic string) May {
	allow := func(verb auth.Verbs) bool { return v.grants.Allow(verb, v.Namespace, topic) }
	return May{allow(auth.Enqueue), allow(auth.Operate), allow(auth.Admin)}
}

// Rights are what the visitor may see and do, as text: who has the same sees the same.
func (v *Visitor) Rights() string { return fmt.Sprint(v.Namespace, v.grants) }

// known is who they are, and whose topics they see where these are not those of everybody.
func (v *Visitor) known() string {
	if v.Namespace == "" || v.Namespace == auth.DefaultNamespace {
		return Cut(v.Name)
	}
	return Cut(v.Name) + " in namespace " + Cut(v.Namespace)
}

// Fleet reports whether the visitor may move what nodes own.
func (v *Visitor) Fleet() bool { return v.grants.AllowFleet(auth.Admin) }

// Audits reports whether the visitor may read what was done at all nodes.
func (v *Visitor) Audits() bool { return v.grants.AllowFleet(auth.Audit) }

// Tokens reports whether the visitor may make tokens.
func (v *Visitor) Tokens() bool { return v.grants.AllowSome(auth.Admin, v.Namespace) }

// Topics reports whether the visitor may make topics of some names.
func (v *Visitor) Topics() bool { return v.grants.AllowSome(auth.Operate, v.Namespace) }

// within finds out who makes a request, and sends those away who have to log in.
func (f *Frame) within(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if f.logins.On() {
			var err error
			if ctx, err = f.logins.As(ctx, f.keyOf(r)); err != nil {
				f.strange(w, r, err)
				return
			}
		}
		me, err := f.access.WhoAmI(ctx, &ddqv1.WhoAmIRequest{})
		if err != nil {
			f.fail(w, r, err)
			return
		}
		next(w, r.WithContext(context.WithValue(ctx, visitorKey{}, newVisitor(me))))
	})
}

func newVisitor(me *ddqv1.WhoAmIResponse) *Visitor {
	v := &Visitor{Name: me.GetName(), Kind: me.GetKind(), LoggedIn: me.GetAuthentication(), Namespace: me.GetNamespace()}
	for _, g := range me.GetGrants() {
		grant := auth.Grant{Namespace: g.GetNamespace(), Topics: auth.Pattern(g.GetTopics())}
		for _, name := range g.GetVerbs() {
			grant.Verbs |= auth.VerbNamed(name)
		}
		v.grants = append(v.grants, grant)
	}
	return v
}
