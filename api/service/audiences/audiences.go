package audiences

import (
	"context"

	"github.com/ddq-io/ddq/actors/audience"
	"github.com/ddq-io/ddq/actors/problem"
	"github.com/ddq-io/ddq/store"
)

// Store is the role of the store for audiences.
type Store interface {
	Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error)
	Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error)
	Listed(ctx context.Context, s store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error)
	Counts(ctx context.Context, shards []store.Shard) ([]store.Stats, error)
	OpenShard(ctx context.Context, s store.Shard, was store.ShardLife) error
	DropShard(ctx context.Context, s store.Shard) error
}

// Audiences is what is done with audiences. Its methods are safe for concurrent use, and
// return *problem.Error.
type Audiences struct {
	store  Store
	limits Limits
	zones  *zones
	turns  *turns
}

// Limits are those of all audiences.
type Limits struct {
	Recipients int64 // of one audience; 0 means 50 million
	PageSize   int   // of listings; 0 means 1,000
}

const (
	maxRecipients = 50_000_000
	maxPage       = 1000
)

// New returns the use cases of audiences on a store.
func New(st Store, limits Limits) *Audiences {
	if limits.Recipients == 0 {
		limits.Recipients = maxRecipients
	}
	if limits.PageSize == 0 {
		limits.PageSize = maxPage
	}
	return &Audiences{store: st, limits: limits, zones: newZones(), turns: newTurns()}
}

// find returns an audience.
func (s *Audiences) find(ctx context.Context, name string) (*audience.Audience, error) {
	if err := checkName("name", name); err != nil {
		return nil, err
	}
	a, err := s.read(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case a.Ended:
		return nil, noAudience(name)
	}
	return a, nil
}

// read returns the record of an audience. One that never was has Ended, too.
func (s *Audiences) read(ctx context.Context, name string) (*audience.Audience, error) {
	cells, err := s.store.Cells(ctx, audience.Catalog(), []store.CellID{audience.RecordID(name)})
	if err != nil {
		return nil, problem.AsError(err)
	}
	if cells[0].Version == 0 {
		return &audience.Audience{Name: name, Ended: true, Gone: true}, nil
	}
	a, err := audience.DecodeAudience(cells[0])
	return a, problem.AsError(err)
}

// commit makes one commit, and reports whether it was made on what is there. One without
// puts always is.
func (s *Audiences) commit(ctx context.Context, shard store.Shard, c store.Commit) (bool, error) {
	if len(c.Puts) == 0 {
		return true, nil
	}
	_, results, err := s.store.Commit(ctx, shard, nil, []store.Commit{c})
	if err != nil {
		return false, err
	}
	return results[0].Status == store.OK, nil
}
