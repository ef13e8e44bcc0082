package faults

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/bench/ledger/checker"
)

// Fault is one way to break things.
type Fault struct {
	Name string
	What string // is done, in a few words
	Cost string // what it may cost, for users; never a task, unless Allow says so
	// Stores are those that it applies to.
	Stores []string
	// Nodes is the least number of nodes that it takes.
	Nodes int
	// Network says that it needs network namespaces: Linux, root and ip(8).
	Network bool
	// Mounts says that it needs disks of its own: Linux and root.
	Mounts bool
	// Compiler says that it needs a C compiler, for a clock that can be set.
	Compiler bool
	// Long says that its rounds take minutes: they begin before the others.
	Long bool
	// Allow is what the checker is told to excuse.
	Allow []checker.Allowance
	// Serves says that what is due meanwhile is delivered meanwhile.
	Serves bool
	// Tokens says that what was taken of rates may be undone, which nobody waits for.
	Tokens bool
	// Prompt says that tasks wait no longer that no worker has.
	Prompt bool

	// tune changes what a round does otherwise, optional.
	tune func(*setting)
	// strike breaks something and heals it. It is called again while time is left.
	strike func(context.Context, *round) error
	// once says that one strike is enough.
	once bool
}

// AppliesTo reports whether a fault can be had on a store.
func (f Fault) AppliesTo(store string) bool { return slices.Contains(f.Stores, store) }

// turn is higher for what is to begin earlier.
func (f Fault) turn() int {
	if f.Long {
		return 1
	}
	return 0
}

// rules are what its rounds are checked against.
func (f Fault) rules() checker.Rules {
	r := checker.Rules{Allowances: f.Allow}
	if f.Tokens {
		r.TokensLost = []string{f.Name}
	}
	if f.Prompt {
		r.Prompt = []string{f.Name}
	}
	if f.Serves {
		r.Serving = []string{f.Name}
	}
	return r
}
