package memstore

import (
	"cmp"
	"iter"
	"math"

	"github.com/RaduBerinde/btreemap"

	"github.com/ddq-io/ddq/store"
)

// orders are the unfinished tasks of ordering keys, in order of (key, time, id). The
// time of one that was held is the lowest there is.
type orders struct {
	tree *btreemap.BTreeMap[orderEntry, struct{}]
}

type orderEntry struct {
	key string
	due store.Millis
	id  string
}

const pinned store.Millis = math.MinInt64

func newOrders() *orders {
	return &orders{btreemap.New[orderEntry, struct{}](16, func(a, b orderEntry) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id))
	})}
}

// place is where a record stands among those of its ordering key, if it has one.
func (r *record) place() (e orderEntry, has bool) {
	key := r.task.Traits.Ordering()
	if key == "" || r.kind != store.KindPending && r.kind != store.KindRunning {
		return e, false
	}
	if r.first {
		return orderEntry{key, pinned, r.task.ID}, true
	}
	return orderEntry{key, r.task.Due, r.task.ID}, true
}

func (o *orders) insert(r *record) {
	if e, has := r.place(); has {
		o.tree.ReplaceOrInsert(e, struct{}{})
	}
}

func (o *orders) remove(r *record) {
	if e, has := r.place(); has {
		o.tree.Delete(e)
	}
}

// of yields the ids of the unfinished tasks of a key.
func (o *orders) of(key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from := btreemap.GE(orderEntry{key: key, due: pinned})
		o.tree.AscendFunc(from, btreemap.Max[orderEntry](), func(e orderEntry, _ struct{}) bool {
			return e.key == key && yield(e.id)
		})
	}
}

// head is the first unfinished task of a key, nil when there is none.
func (sh *shard) head(key string) *record {
	for id := range sh.orders.of(key) {
		return sh.tasks[id]
	}
	return nil
}

// closedTo reports whether the shard takes no task with these traits: it is sealed, and
// no unfinished task has their ordering key.
func (sh *shard) closedTo(t *store.Traits) bool {
	key := t.Ordering()
	return sh.sealed && (key == "" || sh.head(key) == nil)
}

// behind is the answer to who asks for a task that is not the head of its key.
func (r *record) behind() store.HoldResult {
	result := store.HoldResult{Status: store.Behind, Head: r.task.ID}
	if r.kind == store.KindPending {
		result.Due = r.task.Due
	}
	return result
}
