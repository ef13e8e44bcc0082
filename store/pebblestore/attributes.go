package pebblestore

import (
	"context"
	"fmt"
	"slices"

	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/record"
)

// A task's header says which of its attributes are indexed.

func (t *turn) addEntries(id string, attributes []store.Attribute) error {
	for _, a := range unique(attributes) {
		t.key = appendIndexKey(t.key[:0], t.sh.number, a, id)
		if err := t.index(t.key, nil); err != nil {
			return err
		}
	}
	return nil
}

func (t *turn) removeEntries(id string, attributes []store.Attribute) error {
	for _, a := range unique(attributes) {
		t.key = appendIndexKey(t.key[:0], t.sh.number, a, id)
		if err := t.remove(t.key, false); err != nil {
			return err
		}
	}
	return nil
}

// unique leaves out attributes whose entry is that of one before: keys are set once.
func unique(attributes []store.Attribute) []store.Attribute {
	for i := 1; i < len(attributes); i++ {
		if indexedBy(attributes[:i], attributes[i]) {
			return unique(slices.Delete(slices.Clone(attributes), i, i+1))
		}
	}
	return attributes
}

// indexedBy reports whether one of the attributes has the entry of a.
func indexedBy(attributes []store.Attribute, a store.Attribute) bool {
	return slices.ContainsFunc(attributes, func(b store.Attribute) bool {
		return a.Key == b.Key && (a.Value == b.Value || store.NewIndexEntry(a.Value, "") == store.NewIndexEntry(b.Value, ""))
	})
}

// changeEntries leaves those alone that stay, which are set once.
func (t *turn) changeEntries(id string, was, is []store.Attribute) error {
	if len(was) == 0 && len(is) == 0 {
		return nil
	}
	in := func(all []store.Attribute) func(store.Attribute) bool {
		return func(a store.Attribute) bool { return indexedBy(all, a) }
	}
	if err := t.removeEntries(id, slices.DeleteFunc(slices.Clone(was), in(is))); err != nil {
		return err
	}
	return t.addEntries(id, slices.DeleteFunc(slices.Clone(is), in(was)))
}

// spoke notes that a call brings a task, and which attributes are indexed as far as it
// knows.
func (t *turn) spoke(set store.IndexSet) {
	was := t.sh.index
	if t.indexed != nil {
		was = *t.indexed
	}
	if was == (store.IndexState{Ready: set}) {
		return
	}
	if is := was.Add(set, t.empty()); is != was {
		t.indexed = &is
	}
}

// empty reports whether the shard has no task yet.
func (t *turn) empty() bool {
	m := &t.sh.meta
	if m.pending+t.pending+m.done+t.done+m.dead+t.dead != 0 || t.sh.holds.len()+len(t.begun) > 0 {
		return false
	}
	empty := true
	err := t.dir.Scan(appendPrefix(nil, t.sh.number, tableTasks), appendPrefix(nil, t.sh.number, tableTasks+1), func(_, _ []byte) (bool, error) {
		empty = false
		return false, nil
	})
	return empty && err == nil
}

// Lookup returns tasks that have an attribute. Like Window it may return what is not
// synced yet.
func (s *Store) Lookup(ctx context.Context, name store.Shard, q store.IndexQuery) ([]store.IndexEntry, error) {
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

// kindReindex marks the cursors of walks that index tasks. It is none of store's kinds.
const kindReindex store.Kind = 0xfe

// Reindex indexes the tasks of a shard. The position of its cursor is the walk and the
// rest of the last key that it looked at.
func (s *Store) Reindex(ctx context.Context, name store.Shard, set store.IndexSet, cursor string, limit int) (next string, err error) {
	position, err := parseCursor(kindReindex, cursor)
	if err != nil {
		return "", err
	}
	if position != nil && len(position) <= len(store.Token{}) {
		return "", fmt.Errorf("%w: %q", store.ErrBadCursor, cursor)
	}
	_, err = s.change(ctx, name, access{owned: true}, func(t *turn) (err error) {
		next, err = t.reindex(set, position, max(limit, 1))
		return err
	})
	if err != nil {
		return "", err
	}
	return next, nil
}

func (t *turn) reindex(set store.IndexSet, position []byte, limit int) (next string, err error) {
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
		t.indexed = &state
		t.writer() // it is written with the numbers
	}
	return next, nil
}

// reindexTask indexes one task. Its entry keeps the stamp, and so its hold.
func (t *turn) reindexTask(key, value []byte, set store.IndexSet) error {
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
	if err := t.changeEntries(id, was, is); err != nil {
		return err
	}
	e.rewritten = true
	if h := t.sh.holds.get(id); h != nil {
		known := *h
		known.taskRewritten, known.taskIndexed = true, e.indexed != ""
		t.extended = append(t.extended, &known)
	}
	t.value = append(e.appendHeader(t.value[:0]), e.body...)
	return t.set(key, t.value)
}

// checkEntries looks whether the index has what the header of a task says.
func (t *turn) checkEntries(id string) (repaired bool, err error) {
	if !t.sh.meta.indexed {
		return false, nil
	}
	e, f, err := t.find(id)
	if err != nil || f != readable {
		return false, err
	}
	for _, a := range e.attributes() {
		key := appendIndexKey(nil, t.sh.number, a, id)
		has, err := t.has(key)
		if err == nil && !has {
			repaired, err = true, t.replace(key, nil)
		}
		if err != nil {
			return repaired, err
		}
	}
	return repaired, nil
}

// checkEntry looks whether the task of an entry has the attribute.
func (t *turn) checkEntry(key []byte) (repaired bool, err error) {
	name, want, id, ok := record.CutIndexEntry(key[prefixLen:])
	if ok {
		e, f, err := t.find(string(id))
		if err != nil {
			return false, err
		}
		if f == readable && slices.ContainsFunc(e.attributes(), func(a store.Attribute) bool {
			return a.Key == name && store.NewIndexEntry(a.Value, "") == want
		}) {
			return false, nil
		}
	}
	return true, t.remove(key, true)
}
