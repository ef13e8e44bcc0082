package memstore

import (
	"cmp"

	"github.com/RaduBerinde/btreemap"

	"github.com/ddq-io/ddq/store"
)

// attributes are the tasks that have indexed attributes, in order of (name, entry).
type attributes struct {
	tree *btreemap.BTreeMap[attribute, struct{}]
}

type attribute struct {
	name string
	store.IndexEntry
}

func newAttributes() *attributes {
	return &attributes{btreemap.New[attribute, struct{}](16, func(a, b attribute) int {
		return cmp.Or(cmp.Compare(a.name, b.name), a.Compare(b.IndexEntry))
	})}
}

func (x *attributes) insert(t *store.Task) {
	for _, a := range t.Indexed.Of(t.Attributes) {
		x.tree.ReplaceOrInsert(attribute{a.Key, store.NewIndexEntry(a.Value, t.ID)}, struct{}{})
	}
}

func (x *attributes) remove(t *store.Task) {
	for _, a := range t.Indexed.Of(t.Attributes) {
		x.tree.Delete(attribute{a.Key, store.NewIndexEntry(a.Value, t.ID)})
	}
}
