package auth

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// All matches every topic, and as a namespace every namespace.
const All = "*"

// DefaultNamespace is the one of principals that name none.
const DefaultNamespace = "default"

// Grant is verbs on topics of a namespace.
type Grant struct {
	Verbs     Verbs   `json:"verbs"`
	Namespace string  `json:"namespace"` // All: every namespace, and the nodes
	Topics    Pattern `json:"topics"`
}

// Pattern is the name of a topic, the beginning of names followed by a star, or All.
type Pattern string

// Match reports whether a topic has a name that p allows. No topic has an empty name.
func (p Pattern) Match(topic string) bool {
	if prefix, ok := strings.CutSuffix(string(p), "*"); ok {
		return topic != "" && strings.HasPrefix(topic, prefix)
	}
	return topic != "" && string(p) == topic
}

// covers reports whether p matches all that q matches.
func (p Pattern) covers(q Pattern) bool {
	if prefix, ok := strings.CutSuffix(string(p), "*"); ok {
		return strings.HasPrefix(strings.TrimSuffix(string(q), "*"), prefix)
	}
	return p == q
}

const maxPattern = 256

func (p Pattern) check() error {
	switch name := strings.TrimSuffix(string(p), "*"); {
	case p == "":
		return errors.New("the topics are missing: a name, the beginning of names and a star, or * for all")
	case len(p) > maxPattern:
		return fmt.Errorf("topics of more than %d bytes", maxPattern)
	case strings.ContainsAny(name, "*/ \t\r\n\x00"):
		return fmt.Errorf("topics %q: a star stands at the end, after the beginning of names", string(p))
	}
	return nil
}

// isNamespace reports whether a namespace can have a name: [a-z0-9][a-z0-9-]{0,62}.
func isNamespace(name string) bool {
	const most, chars = 63, "abcdefghijklmnopqrstuvwxyz0123456789-"
	return name != "" && len(name) <= most && name[0] != '-' && strings.Trim(name, chars) == ""
}

// Check says what is wrong with a grant.
func (g Grant) Check() error {
	switch {
	case g.Verbs == 0:
		return errors.New("a grant without a verb")
	case g.Verbs&^grantable != 0:
		return fmt.Errorf("a grant cannot have %s", g.Verbs&^grantable)
	case g.Namespace != All && !isNamespace(g.Namespace):
		return fmt.Errorf("namespace %q is neither the name of one nor *", g.Namespace)
	}
	return g.Topics.check()
}

// ParseGrant reads verbs or roles and topics, such as "producer,read:mail*". Without topics
// it is for all of the namespace; root and auditor are for every namespace.
func ParseGrant(text string) (Grant, error) {
	names, topics, given := strings.Cut(text, ":")
	g := Grant{Namespace: DefaultNamespace, Topics: Pattern(topics)}
	if !given {
		g.Topics = All
	}
	for name := range strings.SplitSeq(names, ",") {
		v, err := ParseVerb(strings.TrimSpace(name))
		if err != nil {
			return Grant{}, err
		}
		g.Verbs |= v
		if name == "root" || name == "auditor" {
			g.Namespace = All
		}
	}
	return g, g.Check()
}

func (g Grant) String() string {
	text := g.Verbs.String() + ":" + string(g.Topics)
	switch g.Namespace {
	case All:
		text += " in every namespace"
	case DefaultNamespace, "":
	default:
		text += " in " + g.Namespace
	}
	return text
}

// Grants is all that a principal may do.
type Grants []Grant

// Allow reports whether one of the verbs is granted on a topic.
func (gs Grants) Allow(any Verbs, namespace, topic string) bool {
	for i := range gs {
		if g := &gs[i]; g.Verbs.Has(any) && g.in(namespace) && g.Topics.Match(topic) {
			return true
		}
	}
	return false
}

// AllowAll reports whether one of the verbs is granted on every topic of a namespace.
func (gs Grants) AllowAll(any Verbs, namespace string) bool {
	return slices.ContainsFunc(gs, func(g Grant) bool { return g.Verbs.Has(any) && g.in(namespace) && g.Topics == All })
}

// AllowSome reports whether one of the verbs is granted on any topic of a namespace.
func (gs Grants) AllowSome(any Verbs, namespace string) bool {
	return slices.ContainsFunc(gs, func(g Grant) bool { return g.Verbs.Has(any) && g.in(namespace) })
}

// AllowFleet reports whether one of the verbs is granted on everything, nodes included.
func (gs Grants) AllowFleet(any Verbs) bool {
	return slices.ContainsFunc(gs, func(g Grant) bool { return g.Verbs.Has(any) && g.Namespace == All && g.Topics == All })
}

// Home is the namespace of callers who name none: that of all grants that are of one.
func (gs Grants) Home() string {
	home := ""
	for i := range gs {
		switch of := gs[i].Namespace; {
		case of == All:
		case home != "" && home != of:
			return DefaultNamespace
		default:
			home = of
		}
	}
	return cmp.Or(home, DefaultNamespace)
}

func (g *Grant) in(namespace string) bool { return g.Namespace == All || g.Namespace == namespace }

// Cover reports whether gs allow everything that others allow. Who makes a token may not
// give more than they have.
func (gs Grants) Cover(others Grants) bool {
	return !slices.ContainsFunc(others, func(g Grant) bool { return !gs.cover(g) })
}

func (gs Grants) cover(other Grant) bool {
	rest := other.Verbs
	for _, g := range gs {
		if g.in(other.Namespace) && g.Topics.covers(other.Topics) {
			rest &^= g.Verbs
		}
	}
	return rest == 0
}
