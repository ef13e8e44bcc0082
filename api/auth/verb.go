package auth

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Verbs is a set of what may be done.
type Verbs uint16

const (
	// Enqueue creates tasks, and edits, deletes, cancels and awaits them by id.
	Enqueue Verbs = 1 << iota
	// Work takes deliveries and settles them.
	Work
	// Read sees everything but payloads and results.
	Read
	// Payload sees those, too.
	Payload
	// Operate configures and pauses topics, and changes dead letters and tasks in bulk.
	Operate
	// Admin deletes, purges and reshards topics, and makes tokens; with a grant for
	// everything also nodes and shards.
	Admin
	// Audit reads who did what.
	Audit
	// Node is for nodes of the fleet among themselves. No grant has it.
	Node

	endOfVerbs
	grantable = endOfVerbs - 1 - Node
)

var verbNames = [...]string{"enqueue", "work", "read", "payload", "operate", "admin", "audit", "node"}

// Has reports whether v has one of any.
func (v Verbs) Has(any Verbs) bool { return v&any != 0 }

// Names are the verbs of v, in their usual order.
func (v Verbs) Names() []string {
	names := make([]string, 0, bits.OnesCount16(uint16(v)))
	for i, name := range verbNames {
		if v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (v Verbs) String() string { return strings.Join(v.Names(), ",") }

// VerbNamed returns the verb alone that Names calls so; none when there is no such verb.
func VerbNamed(name string) Verbs {
	if i := slices.Index(verbNames[:], name); i >= 0 {
		return 1 << i
	}
	return 0
}

// ParseVerb returns the verbs of the role of that name, or the verb. Admin is the role, since
// nobody wants the verb alone.
func ParseVerb(name string) (Verbs, error) {
	if v, ok := roles[name]; ok {
		return v, nil
	}
	for i, known := range verbNames {
		if v := Verbs(1 << i); name == known && grantable.Has(v) {
			return v, nil
		}
	}
	return 0, fmt.Errorf("no verb or role is called %q", name)
}

// roles are names for sets of verbs.
var roles = map[string]Verbs{
	"producer": Enqueue,
	"worker":   Work,
	"viewer":   Read,
	"operator": Read | Operate,
	"admin":    grantable &^ Audit,
	"auditor":  Read | Audit,
	"root":     grantable,
}
