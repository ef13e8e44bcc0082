// Package access reads and changes the shards of audiences in the store. Any node may: who
// was not quick enough begins again on what is there by then.
package access

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/store"
)

// Store is the role of the store for the shards of audiences.
type Store interface {
	Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error)
	Server(ctx context.Context, s store.Shard) uint64
	Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error)
	Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error)
	OpenShard(ctx context.Context, s store.Shard, was store.ShardLife) error
}

// What became of a call, beside the errors of the store.
var (
	// ErrGone is of an audience that is deleted, or that is another one by now.
	ErrGone = errors.New("there is no such audience any more")
	// ErrContended is of a shard that others change all the time.
	ErrContended = errors.New("others change the same recipients")
	// errSplit is of a leaf that is not there any more: the directory has changed.
	errSplit = errors.New("a leaf was split")
)

// tries is how often a change is made anew because somebody else was quicker.
const tries = 50

// Access is the shards of audiences in a store.
type Access struct {
	Store  Store
	Random func() float64 // in [0, 1); nil: that of math/rand
}

// Record returns the record of an audience. One that never was has Gone.
func (s Access) Record(ctx context.Context, name string) (*audience.Audience, error) {
	cells, err := s.Store.Cells(ctx, audience.Catalog(), []store.CellID{audience.RecordID(name)})
	if err != nil {
		return nil, err
	}
	if cells[0].Version == 0 {
		return &audience.Audience{Name: name, Ended: true, Gone: true}, nil
	}
	return audience.DecodeAudience(cells[0])
}

// Directory reads what a shard has.
func (s Access) Directory(ctx context.Context, a *audience.Audience, n int) (*audience.Directory, error) {
	cells, err := s.Store.Cells(ctx, a.Shard(n), []store.CellID{audience.DirectoryID})
	if err != nil {
		return nil, err
	}
	if cells[0].Version == 0 {
		return audience.NewDirectory(a.Shards), nil
	}
	return audience.DecodeDirectory(cells[0])
}

// View reads leaves of a directory. A Change whose do returns its error begins again where
// that helps.
func (s Access) View(ctx context.Context, a *audience.Audience, n int, d *audience.Directory, leaves []store.CellID) (*audience.View, error) {
	v := &audience.View{Dir: d, Leaves: make(map[store.CellID]*audience.Leaf, len(leaves))}
	for len(leaves) > 0 {
		cells, err := s.Store.Cells(ctx, a.Shard(n), leaves)
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

// ViewToSweep is View for audience.View.Sweep of the leaves: it has those, too, in which who is removed
// from them lies besides.
func (s Access) ViewToSweep(ctx context.Context, a *audience.Audience, n int, d *audience.Directory, leaves []store.CellID) (*audience.View, error) {
	v, err := s.View(ctx, a, n, d, leaves)
	if err != nil {
		return nil, err
	}
	others, err := s.View(ctx, a, n, d, d.Covering(v.Moved(leaves)))
	if err != nil {
		return nil, err
	}
	maps.Copy(others.Leaves, v.Leaves)
	return others, nil
}

// Leaves reads the directory of a shard and the leaves that are chosen from it, as they
// were together.
func (s Access) Leaves(ctx context.Context, a *audience.Audience, n int, choose func(*audience.Directory) []store.CellID) (v *audience.View, err error) {
	err = s.repeat(ctx, func() (bool, error) {
		d, err := s.Directory(ctx, a, n)
		if err != nil {
			return false, err
		}
		v, err = s.View(ctx, a, n, d, choose(d))
		if errors.Is(err, errSplit) {
			return false, nil
		}
		return true, err
	})
	return v, err
}

// Change changes a shard: do makes a commit of what is there, and is called again when
// somebody else was quicker.
func (s Access) Change(ctx context.Context, a *audience.Audience, n int, do func(*audience.Directory) (store.Commit, error)) error {
	return s.repeat(ctx, func() (bool, error) { return s.try(ctx, a, n, do) })
}

func (s Access) try(ctx context.Context, a *audience.Audience, n int, do func(*audience.Directory) (store.Commit, error)) (bool, error) {
	from := s.Store.Server(ctx, a.Shard(n))
	d, err := s.Directory(ctx, a, n)
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
	c.From = from
	made, err := s.Commit(ctx, a.Shard(n), c)
	if errors.Is(err, store.ErrSealed) {
		return false, s.open(ctx, a, n)
	}
	return made, err
}

// EndRun has a shard forget a run that has ended. The first one remembers what became of it.
func (s Access) EndRun(ctx context.Context, a *audience.Audience, n int, run audience.PastRun) error {
	return s.Change(ctx, a, n, func(d *audience.Directory) (store.Commit, error) {
		c := d.End(run.Run)
		if n > 0 || len(c.Puts) == 0 {
			return c, nil
		}
		cells, err := s.Store.Cells(ctx, a.Shard(n), []store.CellID{audience.PastRunsID})
		if err != nil {
			return c, err
		}
		put, err := audience.Remember(cells[0], run)
		c.Puts = append(c.Puts, put)
		return c, err
	})
}

// PastRuns are the last runs of an audience that have ended, the latest first.
func (s Access) PastRuns(ctx context.Context, a *audience.Audience) ([]audience.PastRun, error) {
	cells, err := s.Store.Cells(ctx, a.Shard(0), []store.CellID{audience.PastRunsID})
	if err != nil {
		return nil, err
	}
	return audience.DecodePastRuns(cells[0])
}

// Commit makes one commit, and reports whether it was made on what is there. One without
// puts always is.
func (s Access) Commit(ctx context.Context, shard store.Shard, c store.Commit) (bool, error) {
	if len(c.Puts) == 0 {
		return true, nil
	}
	_, results, err := s.Store.Commit(ctx, shard, nil, []store.Commit{c})
	switch {
	case errors.Is(err, store.ErrAnotherServer):
		return false, nil
	case err != nil:
		return false, err
	}
	return results[0].Status == store.OK, nil
}

// open makes a shard that another audience of the name had take recipients of this one,
// unless this one is gone.
func (s Access) open(ctx context.Context, a *audience.Audience, n int) error {
	stats, err := s.Store.Counts(ctx, []store.Shard{a.Shard(n)})
	if err != nil {
		return err
	}
	now, err := s.Record(ctx, a.Name)
	if err != nil {
		return err
	}
	if now.Ended || now.Life != a.Life {
		return ErrGone
	}
	return s.Store.OpenShard(ctx, a.Shard(n), stats[0].Life)
}

// Edit changes the record of an audience. change reports whether it changed anything, and may
// be called again.
func (s Access) Edit(ctx context.Context, name string, change func(*audience.Audience) bool) (a *audience.Audience, err error) {
	err = s.repeat(ctx, func() (bool, error) {
		from := s.Store.Server(ctx, audience.Catalog())
		if a, err = s.Record(ctx, name); err != nil {
			return false, err
		}
		if a.Ended {
			return false, ErrGone
		}
		if !change(a) {
			return true, nil
		}
		c := a.Commit()
		c.From = from
		return s.Commit(ctx, audience.Catalog(), c)
	})
	return a, err
}

// Stay has an audience stay that may be about to be deleted: the look for who has it is made anew. ErrGone says
// that it is too late.
func (s Access) Stay(ctx context.Context, name string) (*audience.Audience, error) {
	return s.Edit(ctx, name, func(a *audience.Audience) (was bool) {
		was, a.Leaving = a.Leaving, false
		return was
	})
}

// Leave marks an audience that may be deleted, and returns the version that it then has.
func (s Access) Leave(ctx context.Context, name string) (version int64, err error) {
	_, err = s.Edit(ctx, name, func(a *audience.Audience) bool {
		version = a.Version + 1
		if a.Leaving {
			version = a.Version
		}
		a.Leaving = true
		return version != a.Version
	})
	return version, err
}

// End ends an audience that is as it was when it was marked, and reports false for one that is not.
func (s Access) End(ctx context.Context, name string, version int64) (ended bool, err error) {
	_, err = s.Edit(ctx, name, func(a *audience.Audience) bool {
		ended = a.Version == version
		a.Ended = ended
		return ended
	})
	return ended, err
}

// repeat calls do until it is done, and waits a little longer each time.
func (s Access) repeat(ctx context.Context, do func() (done bool, err error)) error {
	random := s.Random
	if random == nil {
		random = rand.Float64
	}
	for try := range tries {
		if done, err := do(); done || err != nil {
			return err
		}
		most := min(time.Millisecond<<min(try, 6), 50*time.Millisecond)
		select {
		case <-time.After(time.Duration(random() * float64(most))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ErrContended
}
