package memstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// Commit implements store.Cells.
func (m cellTable) Commit(ctx context.Context, s store.Shard, f *store.Fence, commits []store.Commit) (store.Stamp, []store.CommitResult, error) {
	if len(commits) > 0 && commits[0].From != 0 && commits[0].From != m.Server(ctx, s) {
		return store.Stamp{}, nil, store.ErrAnotherServer
	}
	for i := range commits {
		if err := commits[i].CheckQueues(s, f); err != nil {
			return store.Stamp{}, nil, err
		}
	}
	var failed error
	stamp, results, err := batch(ctx, m.core, s, access{adds: true, fence: f}, commits, func(sh *shard, now clock, c store.Commit) store.CommitResult {
		result, err := committer{sh}.check(&c)
		switch {
		case err != nil:
			failed = err
		case result.Status == store.OK:
			result = committer{sh}.apply(&c, s.Life, now)
		}
		return result
	})
	if failed != nil {
		return store.Stamp{}, nil, failed
	}
	for i := range results {
		if made := commits[i].Made; made != nil && results[i].Status == store.OK {
			made(stamp)
		}
	}
	return stamp, results, err
}

// Server implements store.Cells. It is the server that the store would be, see Restore.
func (m cellTable) Server(context.Context, store.Shard) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server
}

// Cells implements store.Cells.
func (m cellTable) Cells(ctx context.Context, s store.Shard, ids []store.CellID) ([]store.Cell, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.shard(s).cells.page(ids), nil
}

// Wakes implements store.Cells.
func (m cellTable) Wakes(ctx context.Context, s store.Shard, q store.WakeQuery) (store.Stamp, []store.Wake, error) {
	if err := m.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	stamp := sh.stamp(m.now())
	stamp.Server = m.server
	return stamp, wakesIn(sh.cells.wakes, q.After, q.To, q.Limit), nil
}

// WakeHistogram implements store.Cells.
func (m cellTable) WakeHistogram(ctx context.Context, s store.Shard, bounds []store.Millis) (store.Stamp, []int64, error) {
	if err := m.enter(ctx); err != nil {
		return store.Stamp{}, nil, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	counts := make([]int64, len(bounds)+1)
	for e := range sh.cells.wakes.after(store.Entry{}) {
		i, exact := slices.BinarySearch(bounds, e.Due)
		if exact {
			i++
		}
		counts[i]++
	}
	return sh.stamp(m.now()), counts, nil
}

// Listed implements store.Cells.
func (m cellTable) Listed(ctx context.Context, s store.Shard, list string, after store.Wake, limit int) ([]store.Cell, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	c := m.shard(s).cells
	if c.lists[list] == nil {
		return nil, nil
	}
	var ids []store.CellID
	for _, w := range wakesIn(c.lists[list], after, store.MaxDue, limit) {
		ids = append(ids, w.ID)
	}
	return c.page(ids), nil
}

// CellPage implements store.Cells. Its cursor is the id of the last cell of the page before.
func (m cellTable) CellPage(ctx context.Context, s store.Shard, kind byte, cursor string, limit int) ([]store.Cell, string, error) {
	if err := m.enter(ctx); err != nil {
		return nil, "", err
	}
	defer m.mu.Unlock()
	if cursor != "" && cursor[0] != kind {
		return nil, "", fmt.Errorf("cells of kind %q: %w", kind, store.ErrBadCursor)
	}
	c := m.shard(s).cells
	var ids []store.CellID
	for id := range c.byID {
		if id.Kind() == kind && id > store.CellID(cursor) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	page := c.page(ids[:min(limit, len(ids))])
	if len(page) == len(ids) {
		return page, "", nil
	}
	return page, string(page[len(page)-1].ID), nil
}

// Parcels implements store.Cells.
func (m cellTable) Parcels(ctx context.Context, s store.Shard, which store.Box, after int64, limit int) ([]store.Parcel, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	b := &m.shard(s).in
	if which == store.OutBox {
		b = &m.shard(s).out
	}
	return b.page(after, limit), nil
}

// Told implements store.Cells.
func (m cellTable) Told(ctx context.Context, s store.Shard, q store.ToldQuery) ([]store.Parcel, []store.Cell, error) {
	if err := m.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	parcels, ids := q.Cut(sh.in.page(q.After, q.Limit))
	return parcels, sh.cells.page(ids), nil
}
