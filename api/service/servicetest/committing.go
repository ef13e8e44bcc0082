package servicetest

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// Committing is a call of store.Cells.Commit, and what makes it.
type Committing struct {
	Commits []store.Commit
	Make    func() (store.Stamp, []store.CommitResult, error)
}

type aroundCommits = func(context.Context, Committing) (store.Stamp, []store.CommitResult, error)

// AroundCommits has a function answer the node's calls of Commit; nil: the store does.
func (g *gatedStore) AroundCommits(around aroundCommits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.committing = around
}

func (g *gatedStore) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if err := g.pass(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	g.mu.Lock()
	around := g.committing
	g.mu.Unlock()
	c := Committing{commits, func() (store.Stamp, []store.CommitResult, error) { return g.cellStore.Commit(ctx, s, f, commits) }}
	if around == nil {
		return c.Make()
	}
	return around(ctx, c)
}
