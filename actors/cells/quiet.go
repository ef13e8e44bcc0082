package cells

import (
	"context"

	"github.com/ddq-io/ddq/store"
)

// quietMost is of how many schedules of a shard it is remembered that nothing hangs on the ends of their runs.
const quietMost = 1 << 15

// quietEnds are the schedules of a shard for which ends of runs change nothing but what they remember, and
// until when that is so. It is known of those that looks have committed and nobody else has changed since.
type quietEnds struct{ until map[store.CellID]store.Millis }

// note records until when the ends of a schedule are quiet; 0: they are not.
func (q *quietEnds) note(id store.CellID, until store.Millis) {
	if until == 0 || len(q.until) >= quietMost {
		if delete(q.until, id); len(q.until) == 0 {
			q.until = nil // a map keeps the room of what it had
		}
		return
	}
	if q.until == nil {
		q.until = make(map[store.CellID]store.Millis)
	}
	q.until[id] = until
}

// has reports whether a parcel says of the end of a run that nothing hangs on.
func (q *quietEnds) has(p *store.Parcel, now store.Millis) bool {
	return p.Ended != nil && now < q.until[p.To]
}

// quietLook is what a look does that puts ends off.
type quietLook struct{ *look }

// read puts off what is told to schedules, if nothing hangs on it and tasks are ready: these wait for
// workers. It looks at each parcel once, takes none, and asks for nothing else. It reports false where
// there is something to do.
func (l quietLook) read(ctx context.Context) (bool, error) {
	if !l.Busy || len(l.quiet.until) == 0 || !toldLook(l).onlyTold() || l.Store.Server(ctx, l.ID) != l.Progress.from {
		return false, nil
	}
	last := max(l.Progress.Taken, l.Progress.putOff)
	for more := true; more; {
		parcels, err := l.Store.Parcels(ctx, l.ID, store.InBox, last, l.Knobs.PassInbox)
		if err != nil {
			return false, err
		}
		for i := range parcels {
			if !l.quiet.has(&parcels[i], l.out.Began) {
				return false, nil
			}
			last = parcels[i].Number
		}
		more = len(parcels) == l.Knobs.PassInbox
	}
	if last == l.Progress.Taken {
		return false, nil
	}
	l.out.PutOff, l.out.Next = true, l.Progress.next
	l.out.Progress.putOff, l.out.Progress.Heard = last, max(l.Progress.Heard, last)
	return true, nil
}
