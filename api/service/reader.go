package service

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/ddq-io/ddq/store"
)

// taskReader reads pages of the tasks of a shard, by their due times or their attributes.
type taskReader struct {
	store interface {
		store.Reader
		store.Index
	}
}

const (
	findEntries = 1000 // of an index, in one read
	findBodies  = 250  // tasks, in one call of the store
)

// read returns tasks by id, the first as far as their bodies fit into an answer. Where a
// store has to sync what others have written before it can answer, the calls for a page
// wait for that together.
func (s *taskReader) read(ctx context.Context, shard store.Shard, ids []string) ([]store.Snapshot, error) {
	chunks := slices.Collect(slices.Chunk(ids, findBodies))
	parts, errs := make([][]store.Snapshot, len(chunks)), make([]error, len(chunks))
	var wg sync.WaitGroup
	for k, chunk := range chunks {
		wg.Go(func() { _, parts[k], errs[k] = s.store.Get(ctx, shard, chunk) })
	}
	wg.Wait()
	found := make([]store.Snapshot, 0, len(ids))
	for k, part := range parts {
		if errs[k] != nil {
			return nil, errs[k]
		}
		found = append(found, part...)
		if len(part) < len(chunks[k]) {
			break
		}
	}
	return found, nil
}

// pendingPage reads a page of pending tasks that may match, at most limit, in order of
// due time: it begins where the filter does, and reads no task that the index says is
// not meant. A cursor is the position of the last entry that was looked at.
func (s *taskReader) pendingPage(ctx context.Context, shard store.Shard, f *TaskFilter, cursor string, limit int) (tasks []store.Snapshot, next string, err error) {
	query, ok := f.window(cursor)
	if !ok {
		return nil, "", store.ErrBadCursor
	}
	if f.IDPrefix == "" {
		query.Limit = max(1, min(limit, findEntries)) // the index says of all others that they may match
	}
	_, entries, err := s.store.Window(ctx, shard, query)
	if err != nil || len(entries) == 0 {
		return nil, "", err
	}
	var ids []string
	var at []int // of ids in entries
	for i, e := range entries {
		if f.matchesEntry(e.ID, e.Due) && len(ids) < min(limit, findEntries) {
			ids, at = append(ids, e.ID), append(at, i)
		}
	}
	last := len(entries) - 1
	if len(ids) == min(limit, findEntries) {
		last = at[len(at)-1]
	}
	var found []store.Snapshot
	if len(ids) > 0 {
		if found, err = s.read(ctx, shard, ids); err != nil {
			return nil, "", err
		}
		if len(found) < len(ids) {
			last = at[len(found)-1]
		}
	}
	if last+1 < len(entries) || len(entries) == query.Limit {
		next = strconv.FormatInt(int64(entries[last].Due), 10) + ":" + entries[last].ID
	}
	return slices.DeleteFunc(found, func(t store.Snapshot) bool { return !t.State.Pending() }), next, nil
}
