package gather

import (
	"context"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/life"
)

// inner has a name of its own, as the interface has a method Cells.
type inner = store.Cells

// Cells are those of a store for the items of one request that are worked on at a time. What
// they read of one shard while another one of them reads there is one call, and so is what they
// commit. Each hears what became of its own; an error is that of the whole call. Everything
// else goes to the store as it is. All calls have the context of the request.
type Cells struct {
	inner
	reads   line[store.Shard, store.CellID, store.Cell]
	commits line[commitKey, store.Commit, commitAnswer]
}

// commitKey is what commits of one call have in common: they are made by one server, and a
// full one refuses all or none.
type commitKey struct {
	shard      store.Shard
	from       uint64
	bringsWork bool
}

type commitAnswer struct {
	stamp  store.Stamp
	result store.CommitResult
}

// New returns cells for one request.
func New(cells store.Cells) *Cells { return &Cells{inner: cells} }

// Cells implements store.Cells.
func (c *Cells) Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error) {
	if len(ids) != 1 {
		return c.inner.Cells(ctx, s, ids)
	}
	cell, answered, err := c.reads.ask(ctx, s, ids[0], func(ctx context.Context, ids []store.CellID) ([]store.Cell, error) {
		return c.inner.Cells(ctx, s, ids)
	})
	switch {
	case err != nil:
		return nil, err
	case !answered: // those before it had as many bytes as one call returns
		return c.inner.Cells(ctx, s, ids)
	}
	return []store.Cell{cell}, nil
}

// Commit implements store.Cells.
func (c *Cells) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if f != nil || len(commits) != 1 {
		return c.inner.Commit(ctx, s, f, commits)
	}
	key := commitKey{s, commits[0].From, life.BringsWork(&commits[0])}
	made, _, err := c.commits.ask(ctx, key, commits[0], func(ctx context.Context, commits []store.Commit) ([]commitAnswer, error) {
		stamp, results, err := c.inner.Commit(ctx, s, nil, commits)
		answers := make([]commitAnswer, len(results))
		for i, r := range results {
			answers[i] = commitAnswer{stamp, r}
		}
		return answers, err
	})
	if err != nil {
		return store.Stamp{}, nil, err
	}
	return made.stamp, []store.CommitResult{made.result}, nil
}
