package pebblestore

import (
	"slices"

	"github.com/ddq-io/ddq/store"
)

// attributes are the index of tasks by their attributes. A task's header says which of
// them are indexed.
type attributes struct{ *batch }

func (x *attributes) add(id string, attributes []store.Attribute) error {
	for _, a := range unique(attributes) {
		x.key = appendIndexKey(x.key[:0], x.sh.number, a, id)
		if err := x.index(x.key, nil); err != nil {
			return err
		}
	}
	return nil
}

func (x *attributes) drop(id string, attributes []store.Attribute) error {
	for _, a := range unique(attributes) {
		x.key = appendIndexKey(x.key[:0], x.sh.number, a, id)
		if err := x.remove(x.key, false); err != nil {
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

// change leaves those alone that stay, which are set once.
func (x *attributes) change(id string, was, is []store.Attribute) error {
	if len(was) == 0 && len(is) == 0 {
		return nil
	}
	in := func(all []store.Attribute) func(store.Attribute) bool {
		return func(a store.Attribute) bool { return indexedBy(all, a) }
	}
	if err := x.drop(id, slices.DeleteFunc(slices.Clone(was), in(is))); err != nil {
		return err
	}
	return x.add(id, slices.DeleteFunc(slices.Clone(is), in(was)))
}

// spoke notes that a call brings a task, and which attributes are indexed as far as it
// knows.
func (x *attributes) spoke(set store.IndexSet) {
	was := x.sh.index
	if x.next.indexed != nil {
		was = *x.next.indexed
	}
	if was == (store.IndexState{Ready: set}) {
		return
	}
	if is := was.Add(set, x.empty()); is != was {
		x.next.indexed = &is
	}
}

// empty reports whether the shard has no task yet.
func (x *attributes) empty() bool {
	m := &x.sh.meta
	if m.pending+x.next.pending+m.done+x.next.done+m.dead+x.next.dead != 0 || x.sh.holds.len()+len(x.next.begun) > 0 {
		return false
	}
	empty := true
	err := x.dir.Scan(appendPrefix(nil, x.sh.number, tableTasks), appendPrefix(nil, x.sh.number, tableTasks+1), func(_, _ []byte) (bool, error) {
		empty = false
		return false, nil
	})
	return empty && err == nil
}
