package memstore

import (
	"cmp"
	"iter"
	"math"

	"github.com/RaduBerinde/btreemap"

	"github.com/ddq-io/ddq/store"
)

// lanes are the pending tasks that have a lane, in order of (lane, time, id).
type lanes struct {
	tree *btreemap.BTreeMap[store.Entry, struct{}]
}

func newLanes() *lanes {
	return &lanes{btreemap.New[store.Entry, struct{}](16, func(a, b store.Entry) int {
		return cmp.Or(compareLanes(a.Traits.Lane(), b.Traits.Lane()), compareEntries(a, b))
	})}
}

func compareLanes(a, b store.Lane) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Key, b.Key))
}

func (l *lanes) insert(e store.Entry) {
	if e.Traits.Lane() != (store.Lane{}) {
		l.tree.ReplaceOrInsert(e, struct{}{})
	}
}

func (l *lanes) remove(e store.Entry) {
	if e.Traits.Lane() != (store.Lane{}) {
		l.tree.Delete(e)
	}
}

// after yields the entries of a lane behind the position e; all of them behind the
// zero Entry.
func (l *lanes) after(lane store.Lane, e store.Entry) iter.Seq[store.Entry] {
	if e.ID == "" && e.Due == 0 {
		e.Due = math.MinInt64
	}
	e.Traits = &store.Traits{Priority: lane.Priority, FairnessKey: lane.Key}
	return func(yield func(store.Entry) bool) {
		l.tree.AscendFunc(btreemap.GT(e), btreemap.Max[store.Entry](), func(e store.Entry, _ struct{}) bool {
			return e.Traits.Lane() == lane && yield(e)
		})
	}
}

// heads returns the lanes behind the given one, at most limit.
func (l *lanes) heads(after *store.Lane, limit int) (heads []store.LaneHead) {
	from := btreemap.Min[store.Entry]()
	for len(heads) < limit {
		if after != nil {
			last := store.Entry{Due: math.MaxInt64, ID: "\xff", Traits: &store.Traits{Priority: after.Priority, FairnessKey: after.Key}}
			from = btreemap.GT(last)
		}
		found := false
		l.tree.AscendFunc(from, btreemap.Max[store.Entry](), func(e store.Entry, _ struct{}) bool {
			heads = append(heads, store.LaneHead{Lane: e.Traits.Lane(), Due: e.Due})
			found = true
			return false
		})
		if !found {
			break
		}
		after = &heads[len(heads)-1].Lane
	}
	return heads
}
