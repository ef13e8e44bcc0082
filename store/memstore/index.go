package memstore

import (
	"cmp"
	"iter"

	"github.com/RaduBerinde/btreemap"

	"github.com/ddq-io/ddq/store"
)

// index is a set of ids in order of (time, id).
type index struct {
	tree *btreemap.BTreeMap[store.Entry, struct{}]
}

func newIndex() *index {
	return &index{btreemap.New[store.Entry, struct{}](16, compareEntries)}
}

func compareEntries(a, b store.Entry) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
}

func (x *index) insert(e store.Entry) { x.tree.ReplaceOrInsert(e, struct{}{}) }
func (x *index) remove(e store.Entry) { x.tree.Delete(e) }
func (x *index) len() int             { return x.tree.Len() }

// after yields the entries behind the position e; all of them behind the zero Entry.
func (x *index) after(e store.Entry) iter.Seq[store.Entry] {
	from := btreemap.GT(e)
	if e.ID == "" && e.Due == 0 {
		from = btreemap.Min[store.Entry]()
	}
	return func(yield func(store.Entry) bool) {
		x.tree.AscendFunc(from, btreemap.Max[store.Entry](), func(e store.Entry, _ struct{}) bool {
			return yield(e)
		})
	}
}

// page returns at most limit entries behind the position e, and whether there are more.
func (x *index) page(e store.Entry, limit int) (page []store.Entry, more bool) {
	for e := range x.after(e) {
		if len(page) >= max(limit, 1) {
			return page, true
		}
		page = append(page, e)
	}
	return page, false
}
