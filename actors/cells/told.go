package cells

import (
	"context"
	"time"

	"github.com/ddq-io/ddq/store"
)

// wholeEvery is the longest that looks are brief: what somebody else changed, and told nobody of, is
// found by one that is not.
const wholeEvery = time.Second

// toldLook is what a look does that is brief.
type toldLook struct{ *look }

// read reads what is told to workflows, where that is all there is to do: a brief look does not ask
// which cells wake, as it has the last answer, and what has become of that since. It reports false where
// a whole look is to be made.
func (l toldLook) read(ctx context.Context) (bool, error) {
	if l.lately(l.Progress.mixed) || !l.onlyTold() || l.Store.Server(ctx, l.ID) != l.Progress.from {
		return false, nil
	}
	parcels, headers, err := l.Store.Told(ctx, l.ID, store.ToldQuery{After: l.Progress.Taken, Limit: l.Knobs.PassInbox, Cells: l.Knobs.PassBatch})
	if err != nil {
		return false, err
	}
	l.parcels = parcels
	if len(parcels) == 0 || !l.onlyFor(store.CellWorkflow) {
		if len(parcels) > 0 {
			l.out.Progress.mixed = l.out.Began
		}
		l.parcels = nil // a schedule decides on parcels that are read later than wakes
		return false, nil
	}
	l.brief, l.asOf, l.more = true, l.out.Began, len(parcels) == l.Knobs.PassInbox || len(headers) == l.Knobs.PassBatch
	l.out.Progress.Heard = max(l.Progress.Heard, parcels[len(parcels)-1].Number)
	l.begin(headers)
	return true, nil
}

// begin looks at workflows with the parcels for them.
func (l toldLook) begin(headers []store.Cell) {
	l.waits, l.gone = make(map[store.CellID]bool), make(map[store.CellID]bool)
	told := make(map[store.CellID]*flow, len(headers))
	for _, c := range headers {
		told[c.ID] = &flow{header: c}
		l.flows = append(l.flows, told[c.ID])
		l.first.note(c.Wake) // somebody else may have put it
	}
	for i := range l.parcels {
		p := &l.parcels[i]
		l.waits[p.To] = true
		if f := told[p.To]; f != nil {
			f.parcels = append(f.parcels, *p)
		}
	}
}

// onlyTold reports whether a look has no other cause than parcels, and no cell wakes.
func (l toldLook) onlyTold() bool {
	next := l.Progress.next
	return l.Told && !l.former() && l.lately(l.Progress.whole) && (next == 0 || next > l.out.Began)
}

// lately reports whether so little time has passed that a look may be brief.
func (l toldLook) lately(since store.Millis) bool {
	now := l.out.Began
	return since != 0 && now >= since && now < since.Add(wholeEvery)
}

// lookAhead finds when the first cell wakes, as far as a brief look knows: what woke first may wake later
// by now, or never, and then the look that it causes finds that.
func (l toldLook) lookAhead() {
	l.first.note(l.Progress.next)
	l.out.Next, l.out.Progress.next = l.first.at, l.first.at
}

// earliest is the first of some moments at which cells wake.
type earliest struct{ at store.Millis } // 0: none does

func (e *earliest) note(at store.Millis) {
	if at != 0 && (e.at == 0 || at < e.at) {
		e.at = at
	}
}

// notePuts notes when the cells wake that a commit has put.
func (e *earliest) notePuts(c *store.Commit) {
	for i := range c.Puts {
		e.note(c.Puts[i].Wake)
	}
}
