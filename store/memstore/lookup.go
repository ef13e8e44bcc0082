package memstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/RaduBerinde/btreemap"

	"github.com/ddq-io/ddq/store"
)

// Lookup implements store.Index.
func (m attributeIndex) Lookup(ctx context.Context, s store.Shard, q store.IndexQuery) ([]store.IndexEntry, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	sh := m.shard(s)
	if !sh.index.Ready.Has(q.Name) {
		return nil, store.ErrNotIndexed
	}
	want := store.NewIndexEntry(q.Value, "")
	from := btreemap.GE(attribute{q.Name, store.IndexEntry{Value: want.Value}})
	if q.After != nil && q.After.Compare(store.IndexEntry{Value: want.Value}) > 0 {
		from = btreemap.GT(attribute{q.Name, *q.After})
	}
	var entries []store.IndexEntry
	sh.attributes.tree.AscendFunc(from, btreemap.Max[attribute](), func(a attribute, _ struct{}) bool {
		if a.name != q.Name || !strings.HasPrefix(a.Value, want.Value) || len(entries) >= q.Limit {
			return false
		}
		if q.Wants(a.IndexEntry) {
			entries = append(entries, a.IndexEntry)
		}
		return true
	})
	return entries, nil
}

// Reindex implements store.Index. A cursor is the walk and the last id of a page.
func (m attributeIndex) Reindex(ctx context.Context, s store.Shard, set store.IndexSet, cursor string, limit int) (string, error) {
	if err := m.enter(ctx); err != nil {
		return "", err
	}
	defer m.mu.Unlock()
	sh, after := m.shard(s), ""
	if cursor == "" {
		if sh.index == (store.IndexState{Ready: set}) {
			return "", nil
		}
		sh.index = sh.index.Begin(set)
	} else {
		walk, last, found := strings.Cut(cursor, ":")
		if b, err := hex.DecodeString(walk); err != nil || len(b) != len(store.Token{}) || !found {
			return "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
		}
		if walk != hex.EncodeToString(sh.index.Walk[:]) || sh.index.Building != set {
			return "", store.ErrReindexed
		}
		after = last
	}
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(sh.tasks)), func(id string) bool { return id <= after })
	var bodies store.Bodies
	left := len(ids)
	for _, id := range ids[:min(len(ids), max(limit, 1))] {
		if bodies.Full() {
			break
		}
		r := sh.tasks[id]
		bodies.Add(&r.task)
		left--
		sh.attributes.remove(&r.task)
		r.task.Indexed = set
		sh.attributes.insert(&r.task)
		after = id
	}
	if left == 0 {
		sh.index = store.IndexState{Ready: set}
		return "", nil
	}
	return hex.EncodeToString(sh.index.Walk[:]) + ":" + after, nil
}
