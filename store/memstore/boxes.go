package memstore

import (
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

// page returns what is behind a number, as one answer.
func (b *box) page(after int64, limit int) (page []store.Parcel) {
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
	return page
}

// leave appends to the in-box what the end of a task leaves for its cell, if it tells one: e
// says how it ends, and r, as it is before that, the rest.
func (sh *shard) leave(r *record, e store.Ended, now clock) {
	if r.task.Tells == "" {
		return
	}
	e.ID, e.Attempt, e.Due, e.Started, e.Worker = r.task.ID, r.task.Attempt, r.task.Due, r.started, r.worker
	e.Error, e.Result = r.task.LastError, slices.Clone(e.Result)
	e.Say = slices.Clone(e.Say)
	sh.in.push(store.Parcel{To: r.task.Tells, Ended: &e}, now)
}
