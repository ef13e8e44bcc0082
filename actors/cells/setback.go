package cells

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	pauses  = 2 * time.Second // what cannot go on wakes again within that
	clockBy = time.Second     // by which a clock is set back, and not only known better
)

// setBack finds that the store's clock was set back between two looks. A cell that could not go on for a moment has stored
// when it wakes again, and others that of now; by a clock that was ahead that is far away. So one pass takes all cells
// that wake before the clock comes again to where it was: one whose time has not come stays as it is.
type setBack struct {
	latest store.Millis // that a look came to, since the clock was set back last
	until  store.Millis // up to which cells wake that are looked at before their time; 0: none are
}

// begin records that a look begins, and reports whether the clock was set back before it.
func (b *setBack) begin(now store.Millis) bool {
	if b.latest <= now.Add(clockBy) {
		b.latest = max(b.latest, now)
		return false
	}
	b.until, b.latest = max(b.until, b.latest.Add(pauses)), now
	return true
}

// end records that a look ends; through: it ended a pass.
func (b *setBack) end(now store.Millis, through bool) {
	b.latest = max(b.latest, now)
	if through {
		b.until = 0
	}
}
