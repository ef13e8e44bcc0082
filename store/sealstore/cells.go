package sealstore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
)

// Commit implements store.Cells.
func (s *Store) Commit(ctx context.Context, shard store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	seal, err := s.sealer(ctx, shard)
	if err != nil {
		return store.Stamp{}, nil, err
	}
	if seal.key != nil {
		sealed := make([]store.Commit, len(commits))
		for i := range commits {
			sealed[i] = seal.commit(&commits[i])
		}
		commits = sealed
	}
	stamp, results, err := s.Inner.Commit(ctx, shard, f, commits)
	if err != nil {
		return stamp, results, err
	}
	open := s.keys.opener(shard.Topic)
	for i := range results {
		inWay := []store.Cell{results[i].Cell}
		if err := open.cells(ctx, inWay); err != nil { // some of the commits may be made
			return store.Stamp{}, nil, fmt.Errorf("%w: read the cell that is in the way: %s", store.ErrUnknown, err.Error())
		}
		results[i].Cell = inWay[0]
	}
	return stamp, results, nil
}

// Cells implements store.Cells.
func (s *Store) Cells(ctx context.Context, shard store.Shard, ids []store.CellID) ([]store.Cell, error) {
	cells, err := s.Inner.Cells(ctx, shard, ids)
	return s.opened(ctx, shard, cells, err)
}

// Listed implements store.Cells.
func (s *Store) Listed(ctx context.Context, shard store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error) {
	cells, err := s.Inner.Listed(ctx, shard, list, after, limit)
	return s.opened(ctx, shard, cells, err)
}

// CellPage implements store.Cells.
func (s *Store) CellPage(ctx context.Context, shard store.Shard, kind byte, cursor string, limit int) ([]store.Cell, string, error) {
	cells, next, err := s.Inner.CellPage(ctx, shard, kind, cursor, limit)
	if cells, err = s.opened(ctx, shard, cells, err); err != nil {
		return nil, "", err
	}
	return cells, next, nil
}

// opened returns cells that were read, opened.
func (s *Store) opened(ctx context.Context, shard store.Shard, cells []store.Cell, err error) ([]store.Cell, error) {
	if err != nil {
		return nil, err
	}
	open := s.keys.opener(shard.Topic)
	if err := open.cells(ctx, cells); err != nil {
		return nil, fmt.Errorf("read cells: %w", err)
	}
	return cells, nil
}

// Parcels implements store.Cells.
func (s *Store) Parcels(ctx context.Context, shard store.Shard, box store.Box, after int64, limit int) ([]store.Parcel, error) {
	parcels, err := s.Inner.Parcels(ctx, shard, box, after, limit)
	return s.openedParcels(ctx, shard, parcels, err)
}

// Told implements store.Cells.
func (s *Store) Told(ctx context.Context, shard store.Shard, q store.ToldQuery) ([]store.Parcel, []store.Cell, error) {
	parcels, cells, err := s.Inner.Told(ctx, shard, q)
	if parcels, err = s.openedParcels(ctx, shard, parcels, err); err != nil {
		return nil, nil, err
	}
	if cells, err = s.opened(ctx, shard, cells, nil); err != nil {
		return nil, nil, err
	}
	return parcels, cells, nil
}

// Messages implements store.Queues. Receipts and the names of queues have nothing that users wrote.
func (s *Store) Messages(ctx context.Context, shard store.Shard, q store.Queue, after int64, limit, bytes int) (store.MessagePage, error) {
	page, err := s.Inner.Messages(ctx, shard, q, after, limit, bytes)
	if page.Messages, err = s.openedParcels(ctx, shard, page.Messages, err); err != nil {
		return store.MessagePage{}, err
	}
	return page, nil
}

// openedParcels returns parcels that were read, opened.
func (s *Store) openedParcels(ctx context.Context, shard store.Shard, parcels []store.Parcel, err error) ([]store.Parcel, error) {
	if err != nil {
		return nil, err
	}
	open := s.keys.opener(shard.Topic)
	if err := open.parcels(ctx, parcels); err != nil {
		return nil, fmt.Errorf("read parcels: %w", err)
	}
	return parcels, nil
}
