package memstore

import (
	"context"
	"slices"

	"github.com/ddq-io/ddq/store"
)

// box is what lies in a box of a shard, in order of the numbers.
type box struct {
	last    int64
	parcels []store.Parcel
}

func (b *box) push(p store.Parcel, now clock) {
	b.last++
	p.Number, p.At, p.Body = b.last, now.Millis(), slices.Clone(p.Body)
	b.parcels = append(b.parcels, p)
}

// take forgets what has a number up to n.
func (b *box) take(n int64) {
	b.parcels = slices.DeleteFunc(b.parcels, func(p store.Parcel) bool { return p.Number <= n })
}

func (b *box) drop(numbers []int64) {
	b.parcels = slices.DeleteFunc(b.parcels, func(p store.Parcel) bool { return slices.Contains(numbers, p.Number) })
}

// told is how the record looks to the cell that its task tells, before whatever ends it.
func (r *record) told() store.Ended {
	return store.Ended{
		ID: r.task.ID, Attempt: r.task.Attempt, Due: r.task.Due, Started: r.started, Worker: r.worker, Error: r.task.LastError,
	}
}

// deleted is what a pending task leaves that somebody deletes or replaces.
func (r *record) deleted() store.Ended {
	told := r.told()
	told.Kind = store.ChangeDeleted
	return told
}

// leave appends to the in-box what the end of a task leaves for its cell.
func (sh *shard) leave(t *store.Task, e store.Ended, now clock) {
	if t.Tells != "" {
		sh.in.push(store.Parcel{To: t.Tells, Ended: &e}, now)
	}
}

// Parcels implements store.Cells.
func (m *Store) Parcels(ctx context.Context, s store.Shard, which store.Box, after int64, limit int) ([]store.Parcel, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	b := &m.shard(s).in
	if which == store.OutBox {
		b = &m.shard(s).out
	}
	var page []store.Parcel
	var bodies store.Bodies
	for _, p := range b.parcels {
		if len(page) >= limit || bodies.Full() {
			break
		}
		if p.Number > after {
			p.Body = slices.Clone(p.Body)
			bodies += store.Bodies(p.Size())
			page = append(page, p)
		}
	}
	return page, nil
}
