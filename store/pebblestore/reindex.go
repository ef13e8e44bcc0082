package pebblestore

import (
	"context"
	"fmt"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// kindReindex marks the cursors of walks that index tasks. It is none of store's kinds.
const kindReindex store.Kind = 0xfe

// Lookup returns tasks that have an attribute. Like Window it may return what is not
// synced yet.
func (s index) Lookup(ctx context.Context, name store.Shard, q store.IndexQuery) ([]store.IndexEntry, error) {
	if err := s.dir.Enter(ctx); err != nil {
		return nil, err
	}
	defer s.dir.Leave()
	sh := s.shards.get(name, false)
	st, err := sh.numbers(s.dir)
	if err != nil {
		return nil, err
	}
	if !st.Index.Ready.Has(q.Name) {
		return nil, store.ErrNotIndexed
	}
	var entries []store.IndexEntry
	from, to := record.IndexRange(appendPrefix(nil, sh.number, tableIndex), &q, func(b []byte, id string) []byte { return append(b, id...) })
	err = s.dir.Scan(from, to, func(key, _ []byte) (bool, error) {
		if _, e, id, ok := record.CutIndexEntry(key[prefixLen:]); ok { // Sweep removes the others
			e.ID = string(id)
			entries = append(entries, e)
		}
		return len(entries) < q.Limit, nil
	})
	if err != nil {
		return nil, err
	}
	return entries, nil
}

// Reindex indexes the tasks of a shard. The position of its cursor is the walk and the
// rest of the last key that it looked at.
func (s index) Reindex(ctx context.Context, name store.Shard, set store.IndexSet, cursor string, limit int) (next string, err error) {
	position, err := parseCursor(kindReindex, cursor)
	if err != nil {
		return "", err
	}
	if position != nil && len(position) <= len(store.Token{}) {
		return "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	_, err = s.change(ctx, name, access{owned: true}, func(t *transaction) (err error) {
		next, err = (reindexer{t}).reindex(set, position, max(limit, 1))
		return err
	})
	if err != nil {
		return "", err
	}
	return next, nil
}

// reindexer brings the index of attributes up to another set of them.
type reindexer struct{ *transaction }

func (t reindexer) reindex(set store.IndexSet, position []byte, limit int) (next string, err error) {
	state, lower := t.sh.index, appendPrefix(nil, t.sh.number, tableTasks)
	switch {
	case position == nil && state == (store.IndexState{Ready: set}):
		return "", nil
	case position == nil:
		state = state.Begin(set)
	case string(position[:len(state.Walk)]) != string(state.Walk[:]) || state.Building != set:
		return "", store.ErrReindexed
	default:
		lower = append(append(lower, position[len(state.Walk):]...), 0)
	}
	seen, bytes, more := 0, 0, false
	var last []byte
	err = t.dir.Scan(lower, appendPrefix(nil, t.sh.number, tableTasks+1), func(key, value []byte) (bool, error) {
		if more = seen == limit || bytes >= store.MaxBodies; more {
			return false, nil
		}
		seen, bytes = seen+1, bytes+len(value)
		last = append(last[:0], key[prefixLen:]...)
		return true, t.reindexTask(key, value, set)
	})
	if err != nil {
		return "", err
	}
	if more {
		next = formatCursor(kindReindex, append(state.Walk[:], last...))
	} else {
		state = store.IndexState{Ready: set}
	}
	if state != t.sh.index {
		t.next.indexed = &state
		t.writer() // it is written with the numbers
	}
	return next, nil
}

// reindexTask indexes one task. Its entry keeps the stamp, and so its hold.
func (t reindexer) reindexTask(key, value []byte, set store.IndexSet) error {
	id, ok := decodeID(key[prefixLen:])
	e, err := decodeEntry(value)
	if !ok || err != nil || e.unreadable {
		return nil
	}
	was, is := e.attributes(), record.BodyAttributes(e.body, set)
	if names := set.In(is); names != e.indexed {
		e.indexed = names
	} else {
		return nil
	}
	if err := t.attributes.change(id, was, is); err != nil {
		return err
	}
	e.rewritten = true
	if h := t.sh.holds.get(id); h != nil {
		known := *h
		known.taskRewritten, known.taskSays, known.told = true, e.says(), e.told()
		t.next.extend(&known)
	}
	t.value = append(e.appendHeader(t.value[:0]), e.body...)
	return t.set(key, t.value)
}
