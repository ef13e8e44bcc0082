package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ddq-io/ddq/store"
)

// indexScan pages through the tasks of a shard that a filter with attributes may match: by
// the index of one of them where the shard is complete for it, and else list by list.
// The shard may be so at one page and not at the next: what the index had told by then is
// not told again.
type indexScan struct {
	*taskReader
	filter  *TaskFilter
	kinds   []store.Kind // of tasks that are meant
	indexed []int        // positions of attributes of the filter that its topic indexes, the most telling one first
}

func (s *taskReader) byAttributes(t *store.Topic, f *TaskFilter, kinds []store.Kind) *indexScan {
	x := &indexScan{taskReader: s, filter: f, kinds: kinds}
	for i, a := range f.Attributes {
		if t.Indexed.Has(a.Key) {
			x.indexed = append(x.indexed, i)
		}
	}
	slices.SortStableFunc(x.indexed, func(i, j int) int {
		a, b := f.Attributes[i], f.Attributes[j]
		if a.Prefix != b.Prefix {
			if b.Prefix {
				return -1
			}
			return 1
		}
		return cmp.Compare(len(b.Value), len(a.Value))
	})
	return x
}

// spot is a place in the tasks of a shard; the zero one is the beginning.
type spot struct {
	Index *indexSpot `json:"i,omitempty"` // where the index was read to
	Walk  *walkSpot  `json:"w,omitempty"` // where the lists were read to, after that
}

// indexSpot is an entry of the index of an attribute.
type indexSpot struct {
	Attribute int    `json:"a"` // position in the filter
	Value     []byte `json:"v"`
	Cut       bool   `json:"c,omitempty"`
	ID        []byte `json:"t"`
}

type walkSpot struct {
	Kind   int    `json:"k"` // position in kinds
	Cursor string `json:"p"`
}

func (s *indexSpot) entry() store.IndexEntry {
	return store.IndexEntry{Value: string(s.Value), Cut: s.Cut, ID: string(s.ID)}
}

func (x *indexScan) decode(cursor string) (at spot, ok bool) {
	if cursor == "" {
		return at, true
	}
	if json.Unmarshal([]byte(cursor), &at) != nil || at == (spot{}) {
		return at, false
	}
	if at.Index != nil && (at.Index.Attribute < 0 || at.Index.Attribute >= len(x.filter.Attributes)) {
		return at, false
	}
	return at, at.Walk == nil || at.Walk.Kind >= 0 && at.Walk.Kind < len(x.kinds)
}

func (s *spot) encode() string {
	b, _ := json.Marshal(s) // numbers, bytes and text
	return string(b)
}

// page returns tasks that may match, and the cursor of the next ones.
func (x *indexScan) page(ctx context.Context, shard store.Shard, cursor string, limit int) ([]store.Snapshot, string, error) {
	at, ok := x.decode(cursor)
	if !ok {
		return nil, "", store.ErrBadCursor
	}
	if at == (spot{}) {
		few, err := x.narrow(ctx, shard)
		if err != nil {
			return nil, "", err
		}
		if few {
			at.Walk = new(walkSpot)
		}
	}
	if at.Walk == nil {
		tasks, next, err := x.indexPage(ctx, shard, &at, limit)
		if !errors.Is(err, store.ErrNotIndexed) {
			return tasks, next, err
		}
		at.Walk = new(walkSpot)
	}
	return x.walkPage(ctx, shard, &at, limit)
}

// narrow reports whether the due times of the filter leave few tasks of the shard, which are
// then read without a look at what else they are.
func (x *indexScan) narrow(ctx context.Context, shard store.Shard) (bool, error) {
	f := x.filter
	if len(x.indexed) == 0 || f.DueFrom == 0 && f.DueBefore == 0 ||
		slices.ContainsFunc(x.kinds, func(k store.Kind) bool { return k == store.KindDone || k == store.KindDead }) {
		return false, nil
	}
	q, _ := f.window("")
	_, entries, err := x.store.Window(ctx, shard, q)
	return len(entries) < q.Limit, err
}

// indexPage reads on in the index, or begins with the first that can be read.
func (x *indexScan) indexPage(ctx context.Context, shard store.Shard, at *spot, limit int) (tasks []store.Snapshot, next string, err error) {
	if at.Index != nil {
		return x.lookup(ctx, shard, at.Index.Attribute, at.Index, limit)
	}
	err = store.ErrNotIndexed
	for _, i := range x.indexed {
		if tasks, next, err = x.lookup(ctx, shard, i, nil, limit); !errors.Is(err, store.ErrNotIndexed) {
			return tasks, next, err
		}
	}
	return nil, "", err
}

func (x *indexScan) query(attribute int) store.IndexQuery {
	a := &x.filter.Attributes[attribute]
	return store.IndexQuery{Name: a.Key, Value: a.Value, Prefix: a.Prefix}
}

func (x *indexScan) lookup(ctx context.Context, shard store.Shard, attribute int, after *indexSpot, limit int) ([]store.Snapshot, string, error) {
	q := x.query(attribute)
	q.Limit = max(1, min(limit, findEntries))
	if after != nil {
		e := after.entry()
		q.After = &e
	}
	entries, err := x.store.Lookup(ctx, shard, q)
	if err != nil || len(entries) == 0 {
		return nil, "", err
	}
	var ids []string
	var at []int // of ids in entries
	for i, e := range entries {
		if strings.HasPrefix(e.ID, x.filter.IDPrefix) {
			ids, at = append(ids, e.ID), append(at, i)
		}
	}
	found, err := x.read(ctx, shard, ids)
	if err != nil {
		return nil, "", err
	}
	next, last := "", entries[len(entries)-1]
	if len(found) < len(ids) {
		last = entries[at[len(found)-1]]
	}
	if len(entries) == q.Limit || len(found) < len(ids) {
		next = (&spot{Index: &indexSpot{Attribute: attribute, Value: []byte(last.Value), Cut: last.Cut, ID: []byte(last.ID)}}).encode()
	}
	return slices.DeleteFunc(found, func(t store.Snapshot) bool {
		return t.State == store.StateUnknown || !slices.Contains(x.kinds, kindOf(t.State))
	}), next, nil
}

func (x *indexScan) walkPage(ctx context.Context, shard store.Shard, at *spot, limit int) (tasks []store.Snapshot, next string, err error) {
	walk := at.Walk
	if x.kinds[walk.Kind] == store.KindPending {
		tasks, walk.Cursor, err = x.pendingPage(ctx, shard, x.filter, walk.Cursor, limit)
	} else {
		tasks, walk.Cursor, err = x.store.List(ctx, shard, x.kinds[walk.Kind], walk.Cursor, limit)
	}
	if err != nil {
		return nil, "", err
	}
	if at.Index != nil {
		tasks = slices.DeleteFunc(tasks, func(t store.Snapshot) bool { return x.told(&t, at.Index) })
	}
	if walk.Cursor == "" {
		walk.Kind++
	}
	if walk.Kind == len(x.kinds) {
		return tasks, "", nil
	}
	return tasks, at.encode(), nil
}

// told reports whether the index told of a task before it was read no further.
func (x *indexScan) told(t *store.Snapshot, last *indexSpot) bool {
	q := x.query(last.Attribute)
	return slices.ContainsFunc(t.Attributes, func(a store.Attribute) bool {
		e := store.NewIndexEntry(a.Value, t.ID)
		return a.Key == q.Name && q.Wants(e) && e.Compare(last.entry()) <= 0
	})
}
