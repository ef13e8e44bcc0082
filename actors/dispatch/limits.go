package dispatch

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

// Tick looks at what waits for a moment: the one that was asked for has come. Limits must
// have been configured; so for ClockSet, Tokens, Permits and Freed.
func (t *Topic) Tick(now, asked time.Time) {
	if asked.Equal(t.armed) {
		t.armed = time.Time{}
	}
	t.limiter.service(now)
	t.hold(now, t.admitted())
}

// ClockSet forgets moments that were computed before the clock was set, and asks for the
// next Tick again: its timer counts from what the clock said then.
func (t *Topic) ClockSet(now time.Time) {
	t.armed = time.Time{}
	t.limiter.clockSet(now)
	t.hold(now, t.admitted())
}

// Tokens records what reservations came to. Failed: the store did, and got is empty.
func (t *Topic) Tokens(now time.Time, asked []Reservation, got []store.Tokens, failed bool) {
	t.limiter.reserved(now, asked, got, failed)
	t.hold(now, t.admitted())
}

// Permits records what asking for permits came to.
func (t *Topic) Permits(now time.Time, all []Acquired) {
	fx := t.fill()
	fx.Free = append(fx.Free, t.limiter.acquired(now, all)...)
	t.hold(now, t.admitted())
}

// Freed records that permits of keys may be free: those that it is this node's turn for,
// and others.
func (t *Topic) Freed(now time.Time, inTurn, keys []string) {
	for _, key := range inTurn {
		t.limiter.freed(now, key, true)
	}
	for _, key := range keys {
		t.limiter.freed(now, key, false)
	}
	t.hold(now, t.admitted())
}
