package memstore

import (
	"context"
	"maps"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// rewriter is store.Rewriter.
type rewriter struct{ *core }

// Rewrite implements store.Rewriter. A cursor is the id of the last task; behind the last of them come all the
// cells at once.
func (m rewriter) Rewrite(ctx context.Context, s store.Shard, r store.Rewrite, cursor string, limit int) (next string, err error) {
	if err := m.enter(ctx); err != nil {
		return "", err
	}
	defer m.mu.Unlock()
	sh := m.shards[s.Name()]
	if sh == nil {
		return "", nil
	}
	ids := slices.Sorted(maps.Keys(sh.tasks))
	first, found := slices.BinarySearch(ids, cursor)
	if found {
		first++
	}
	ids = ids[first:]
	if limit = max(limit, 1); len(ids) > limit {
		ids = ids[:limit]
		next = ids[limit-1]
	}
	for _, id := range ids {
		sh.tasks[id].rewrite(r)
	}
	if next == "" {
		sh.cells.rewrite(r)
	}
	return next, nil
}

// rewrite has r write what a user wrote of a task anew.
func (r *record) rewrite(by store.Rewrite) {
	if t := r.task; by.Task(&t) {
		r.task.Payload, r.task.Encrypted, r.task.RunOf, r.task.StepOf = t.Payload, t.Encrypted, t.RunOf, t.StepOf
	}
	if text, other := by.Value([]byte(r.task.LastError)); other {
		r.task.LastError = string(text)
	}
	if r.past != nil {
		past := *r.past
		if past.Rewrite(by) {
			r.past = &past
		}
	}
	for i := range r.journal {
		if e := r.journal[i]; by.Entry(&e) {
			r.journal[i] = e
		}
	}
}

// rewrite has r write the bodies of cells anew, whose versions stay.
func (c *cells) rewrite(r store.Rewrite) {
	for id, cell := range c.byID {
		if body, other := r.Value(cell.Body); other {
			cell.Body = body
			c.byID[id] = cell
		}
	}
}
