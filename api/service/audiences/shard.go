package audiences

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// tries is how often a change is made anew because somebody else was quicker.
const tries = 50

// directory reads what a shard has.
func (s *Audiences) directory(ctx context.Context, a *audience.Audience, n int) (*audience.Directory, error) {
	cells, err := s.store.Cells(ctx, a.Shard(n), []store.CellID{audience.DirectoryID})
	if err != nil {
		return nil, err
	}
	if cells[0].Version == 0 {
		return audience.NewDirectory(a.Shards), nil
	}
	return audience.DecodeDirectory(cells[0])
}

// errSplit is of a leaf that is not there any more: the directory has changed.
var errSplit = errors.New("a leaf was split")

// view reads leaves of a directory.
func (s *Audiences) view(ctx context.Context, a *audience.Audience, n int, d *audience.Directory, leaves []store.CellID) (*audience.View, error) {
	v := &audience.View{Dir: d, Leaves: make(map[store.CellID]*audience.Leaf, len(leaves))}
	for len(leaves) > 0 {
		cells, err := s.store.Cells(ctx, a.Shard(n), leaves)
		if err != nil {
			return nil, err
		}
		for _, c := range cells {
			if c.Version == 0 {
				return nil, errSplit
			}
			if v.Leaves[c.ID], err = audience.DecodeLeaf(c, a.Shards); err != nil {
				return nil, err
			}
		}
		leaves = leaves[len(cells):]
	}
	return v, nil
}

// change changes a shard: do makes a commit of what is there, and is called again when
// somebody else was quicker.
func (s *Audiences) change(ctx context.Context, a *audience.Audience, n int, do func(*audience.Directory) (store.Commit, error)) error {
	done, err := s.turns.take(ctx, a.Shard(n))
	if err != nil {
		return problem.AsError(err)
	}
	defer done()
	for try := range tries {
		made, err := s.tryChange(ctx, a, n, do)
		if made || err != nil {
			return problem.AsError(err)
		}
		if err := pause(ctx, try); err != nil {
			return problem.AsError(err)
		}
	}
	return contended()
}

func (s *Audiences) tryChange(ctx context.Context, a *audience.Audience, n int, do func(*audience.Directory) (store.Commit, error)) (bool, error) {
	d, err := s.directory(ctx, a, n)
	if err != nil {
		return false, err
	}
	c, err := do(d)
	switch {
	case errors.Is(err, errSplit):
		return false, nil
	case err != nil:
		return false, err
	}
	made, err := s.commit(ctx, a.Shard(n), c)
	if errors.Is(err, store.ErrSealed) {
		return false, s.open(ctx, a, n)
	}
	return made, err
}

// open makes a shard that another audience of the name had take recipients of this one,
// unless this one is gone.
func (s *Audiences) open(ctx context.Context, a *audience.Audience, n int) error {
	stats, err := s.store.Counts(ctx, []store.Shard{a.Shard(n)})
	if err != nil {
		return err
	}
	now, err := s.read(ctx, a.Name)
	if err != nil {
		return err
	}
	if now.Ended || now.Life != a.Life {
		return noAudience(a.Name)
	}
	return s.store.OpenShard(ctx, a.Shard(n), stats[0].Life)
}

// pause waits a little longer each time.
func pause(ctx context.Context, try int) error {
	most := min(time.Millisecond<<min(try, 6), 50*time.Millisecond)
	select {
	case <-time.After(rand.N(most)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// atOnce is how many shards one call works on at a time.
const atOnce = 16

// each calls do for shards of an audience, several at a time, and returns the first error,
// after which no more are begun.
func each(ctx context.Context, shards []int, do func(context.Context, int) error) error {
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, n := range shards {
		if within.Err() != nil {
			break
		}
		g.Go(func() error { return do(within, n) })
	}
	if err := g.Wait(); err != nil {
		return problem.AsError(err)
	}
	return problem.AsError(ctx.Err())
}

// all are the numbers of the shards of an audience.
func all(a *audience.Audience) []int {
	shards := make([]int, a.Shards)
	for n := range shards {
		shards[n] = n
	}
	return shards
}
