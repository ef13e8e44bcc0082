package wakes

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Never is the wake time of a shard that has nothing to do.
const Never = store.MaxDue

const (
	// trusted is how long a wake time counts at most. What the numbers of a shard do not show
	// is found after that.
	trusted = 10 * time.Minute

	// cellsTrusted is the same for a shard that has cells: a commit of another node may change
	// when one wakes, and no number shows that. An open shard looks at its cells every minute.
	cellsTrusted = 45 * time.Second
)

// Table has the wake times of shards. The zero value is ready.
//
// Invariant: a wake time counts while the numbers of its shard are what they were when it was
// read. Whatever makes a task pending, or due earlier, raises Seq; a store that was set back has
// another Seq, another Server or another number of pending tasks.
type Table struct {
	entries map[store.Shard]entry
}

// entry is a wake time, and what it was read under.
type entry struct {
	numbers
	wake, looked store.Millis // on the shard's clock
}

// numbers are those of a shard that change with what it has to do.
type numbers struct {
	seq, pending, cells int64
	server              uint64
	life                store.ShardLife
}

func numbersOf(st *store.Stats) numbers {
	return numbers{seq: st.Seq, pending: st.Pending, cells: st.Cells, server: st.Server, life: st.Life}
}

// Wake returns when a shard with these numbers has something to do, 0 for now, and whether that
// is known. If not, the store is to be asked for its first task and cell. Some stores say the
// first task with the numbers.
func (t *Table) Wake(s store.Shard, st *store.Stats) (at store.Millis, known bool) {
	switch {
	case st.Running+st.Parcels > 0:
		return 0, true
	case st.Pending+st.Cells == 0:
		return Never, true
	case st.Cells == 0 && st.OldestMs != 0:
		return st.OldestMs, true
	}
	e, there := t.entries[s]
	if !there || e.numbers != numbersOf(st) || !e.fresh(timeOf(st)) {
		return 0, false
	}
	return e.wake, true
}

// fresh reports whether an entry is young enough. A clock that was set back says nothing about
// its age.
func (e *entry) fresh(now store.Millis) bool {
	most := trusted
	if e.cells > 0 {
		most = cellsTrusted
	}
	return e.looked <= now && now < e.looked.Add(most)
}

// Learn records a wake time, which was read after the numbers of its shard.
func (t *Table) Learn(s store.Shard, st *store.Stats, wake store.Millis) {
	if t.entries == nil {
		t.entries = make(map[store.Shard]entry)
	}
	t.entries[s] = entry{numbers: numbersOf(st), wake: wake, looked: timeOf(st)}
}

// Keep forgets all shards but these, once there are others.
func (t *Table) Keep(shards []store.Shard) {
	if len(t.entries) <= len(shards) {
		return
	}
	kept := make(map[store.Shard]entry, len(shards))
	for _, s := range shards {
		if e, there := t.entries[s]; there {
			kept[s] = e
		}
	}
	t.entries = kept
}

func timeOf(st *store.Stats) store.Millis { return store.Millis(st.Now.UnixMilli()) }
