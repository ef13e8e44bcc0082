package audiences

import (
	"context"
	"sync/atomic"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/store"
)

// sweepLeaves is how many leaves one commit of a sweep looks at; fewer when it changes many others.
const sweepLeaves = 64

// Replace begins a replacement of all recipients, and returns its number. What is put from
// then on stays when it ends; until then nothing goes. One that is under way is over.
func (s *Audiences) Replace(ctx context.Context, name string) (generation int64, err error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	if err := checkName("name", name); err != nil {
		return 0, err
	}
	a, err := s.Edit(ctx, name, func(a *audience.Audience) bool {
		a.Generation, a.Replacing = a.Generation+1, true
		return true
	})
	if err != nil {
		return 0, asProblem(name, err)
	}
	return a.Generation, each(ctx, all(a), func(ctx context.Context, n int) error {
		return s.change(ctx, a, n, func(d *audience.Directory) (store.Commit, error) {
			c, ok := d.Replace(a.Generation)
			if !ok {
				return c, replaced(a.Generation)
			}
			return c, nil
		})
	})
}

// EndReplacement ends a replacement: recipients that it has not brought are removed. Repeated
// it goes on where it was, or finds nothing to do.
func (s *Audiences) EndReplacement(ctx context.Context, name string, generation int64) (removed int64, err error) {
	a, err := s.find(ctx, name)
	if err != nil {
		return 0, err
	}
	if a.Generation != generation || generation == 0 {
		return 0, replaced(generation)
	}
	var sum atomic.Int64
	err = each(ctx, all(a), func(ctx context.Context, n int) error {
		return s.endIn(ctx, a, n, &sum)
	})
	if err != nil {
		return sum.Load(), err
	}
	_, err = s.Edit(ctx, name, func(a *audience.Audience) bool {
		changes := a.Generation == generation && a.Replacing
		a.Replacing = a.Replacing && !changes
		return changes
	})
	return sum.Load(), asProblem(name, err)
}

// endIn ends a replacement in one shard.
func (s *Audiences) endIn(ctx context.Context, a *audience.Audience, n int, sum *atomic.Int64) error {
	for cursor, more := (audience.Cursor{}), true; more; {
		var removed int64
		var next audience.Cursor
		err := s.change(ctx, a, n, func(d *audience.Directory) (store.Commit, error) {
			if d.Generation != a.Generation {
				return store.Commit{}, replaced(a.Generation)
			}
			p, err := s.partOf(ctx, a, n, d, cursor)
			if err != nil {
				return store.Commit{}, err
			}
			next, more = p.next, p.more
			var c store.Commit
			c, removed = p.Sweep(p.leaves)
			return c, nil
		})
		if err != nil {
			return err
		}
		sum.Add(removed)
		cursor = next
	}
	return s.change(ctx, a, n, func(d *audience.Directory) (store.Commit, error) {
		c, ok := d.EndReplacement(a.Generation)
		if !ok {
			return c, replaced(a.Generation)
		}
		return c, nil
	})
}

// part is what one commit of a sweep looks at.
type part struct {
	*audience.View
	leaves []store.CellID
	next   audience.Cursor // behind them
	more   bool
}

// partOf reads the part of a sweep from a cursor on.
func (s *Audiences) partOf(ctx context.Context, a *audience.Audience, n int, d *audience.Directory, from audience.Cursor) (p part, err error) {
	for most := sweepLeaves; ; most = (most + 1) / 2 {
		p.leaves, p.next, p.more = d.Page(from, most)
		p.View, err = s.ViewToSweep(ctx, a, n, d, p.leaves)
		if err != nil || most == 1 || len(p.Leaves) <= maxLeaves {
			return p, err
		}
	}
}
