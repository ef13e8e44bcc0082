package intake

import (
	"sync"
	"time"
)

const (
	good = time.Second // how long a look at the backlog counts

	// Pause is the time between two looks.
	Pause = 10 * time.Millisecond
)

// Allowance is what this node may still add to a topic with a backlog cap. A look
// counts the tasks that wait in the store, and allows this node its share of the room
// that they leave; until that is used up, or a second has passed, nothing is asked.
// So an enqueue costs no round trip, and all of them together cost at most a hundred
// looks a second. A change of the cap is a look.
//
// One node is exact, but for what nacks, expired holds and requeues bring back: they
// are never refused. With n nodes each has at most the n-th part of the room that it
// saw within the last second. So the topic has never more than its cap and what the
// others were allowed in that second: less than the room that there was, and next to
// nothing once the topic is about full.
type Allowance struct {
	mu      sync.Mutex
	left    int           // tasks that may be added without a look; guarded by mu, as all
	most    int           // the cap that the last look was for
	flying  int           // let in, and not answered yet
	until   time.Time     // the last look counts until then
	again   time.Time     // there is no look before that
	looking chan struct{} // closed when the look under way is over; nil: none is
}

// Verdict is what becomes of one more task.
type Verdict uint8

const (
	LetIn      Verdict = iota + 1 // it is counted until Leave
	TurnedAway                    // there is no room
	LookFirst                     // ask again after a look
)

// Take lets one task in, if that is known to be right for the cap that the topic has now.
func (b *Allowance) Take(now time.Time, most int) Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.most != most:
		return LookFirst
	case b.left > 0 && now.Before(b.until):
		b.left--
		b.flying++
		return LetIn
	case now.Before(b.again):
		return TurnedAway
	}
	return LookFirst
}

// Leave counts n tasks out that were let in and are answered.
func (b *Allowance) Leave(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying -= n
}

// Begin says whether the caller is to look; else it is to wait for who does.
func (b *Allowance) Begin() (mine bool, over chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looking == nil {
		b.looking, mine = make(chan struct{}), true
	}
	return mine, b.looking
}

// Seen records how many tasks wait, of the most that may, among so many nodes. What
// is still in flight may be among them or not: it counts.
func (b *Allowance) Seen(now time.Time, waiting, most, nodes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := most - waiting - b.flying
	b.left, b.most = max(0, (room+nodes-1)/nodes), most
	b.until, b.again = now.Add(good), now.Add(Pause)
}

// PutOff has the next look wait for as long as the last one left no room: one that costs much.
func (b *Allowance) PutOff(until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == 0 && until.After(b.again) {
		b.again = until
	}
}

// End lets go of those that wait for a look.
func (b *Allowance) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.looking)
	b.looking = nil
}
