package shard

import (
	"context"
	"math"
	"time"

	"github.com/ddq-io/ddq/actors/cells"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/timer"
)

const (
	cellsEvery = time.Minute // the longest that cells are not looked at: another node may have changed when one wakes
	wakeAlarm  = "wake"      // the one entry of the timer queue
)

// What the keeper of cells tells itself.
type (
	// cellsDue comes from the wheel: a cell wakes.
	cellsDue struct{ ms int64 }
	// lookAgain: a look that failed is to be repeated.
	lookAgain struct{}
)

// cellKeeper is the scheduler of a shard that this node owns: it looks at the cells that wake
// and at the parcels for them, steps each, and commits what becomes of them. Nothing of a
// cell is kept in memory between two looks, but when the next one wakes.
//
// Invariants:
//   - one look is in flight at most, and none that is not under the claim
//   - what changes while it is begins the next one
type cellKeeper struct {
	*shardState
	claim    *claimer
	notifier *notifier
	looker   *cells.Looker // nil: the store keeps none
	alarm    *timer.Queue

	wanted   bool         // a look is to begin
	looking  bool         // and is in flight
	next     store.Millis // when a cell wakes, as the last look found it; 0: none does
	looked   store.Millis // when that was
	cells    int64        // that the shard has, or 1 when it has some
	later    bool         // a lookAgain comes
	progress cells.Progress
}

func newCellKeeper(claim *claimer, notifier *notifier) cellKeeper {
	return cellKeeper{shardState: claim.shardState, claim: claim, notifier: notifier, looker: newLooker(claim.shardState)}
}

// newLooker returns what looks at the cells of a shard; nil for a store that keeps none.
func newLooker(b *shardState) *cells.Looker {
	if b.Cells == nil {
		return nil
	}
	return cells.NewLooker(cells.Shard{
		ID: b.id, Store: b.Cells, Tasks: b.Store, Counts: b.CountsOf, Calendars: b.Calendars.Fresh, Resolve: b.Resolve,
		Now: b.now, Random: b.Random, Metrics: &b.Metrics.Schedules, Log: b.Log,
	})
}

// receive handles a message of the keeper.
func (k *cellKeeper) receive(message any, own bool) {
	switch m := message.(type) {
	case *cellsDue:
		if k.alarm != nil {
			k.alarm.Take(m.ms)
			k.onDue(m.ms)
		}
	case *CellsChanged:
		k.changed()
	case *lookAgain:
		k.later = false
		k.look()
	case *ParcelsHeard:
		k.heard(m.In)
	case *cells.Outcome:
		k.onKept(m, own)
	}
}

// own begins to keep the cells of a shard that was claimed.
func (k *cellKeeper) own() {
	k.progress, k.next = cells.Progress{}, 0
	k.look()
}

// look has a look begin, now or behind the one that is in flight.
func (k *cellKeeper) look() {
	if k.looker != nil && k.claim.owned() {
		k.wanted = true
		k.scheduleFlush()
	}
}

// heard records that the in-box has come to a number.
func (k *cellKeeper) heard(in int64) {
	if in > k.progress.Heard {
		k.progress.Heard = in
		k.look()
	}
}

// notice looks at what is another part's for what it means for cells.
func (k *cellKeeper) notice(message any) {
	switch m := message.(type) {
	case *SeqSeen:
		k.seen(m)
	case *EndedElsewhere:
		k.endedElsewhere(len(m.Holds) == 0)
	}
}

// known is what the keeper knows of the store.
func (k *cellKeeper) known() knownCells { return knownCells{in: k.progress.Heard, cells: k.cells > 0} }

// seen compares what is known with the store.
func (k *cellKeeper) seen(m *SeqSeen) {
	if fresh := m.Cells > 0 && k.cells == 0; fresh {
		k.look()
	}
	k.cells = m.Cells
	k.heard(m.In)
}

// changed looks at cells that a call of this node changed, or has their owner look.
func (k *cellKeeper) changed() {
	k.look()
	if k.looker != nil && !k.claim.owned() && !k.Fleet.Alone() {
		k.Fleet.NotifyOwner(k.id, fleet.Notice{Ended: []fleet.EndedNotice{{Shard: k.id}}})
	}
}

// endedElsewhere learns that another node ended tasks, which may have left parcels, or no
// task but changed a cell.
func (k *cellKeeper) endedElsewhere(none bool) {
	if k.cells > 0 || none {
		k.look()
	}
}

// configured moves the cells of a shard that is one of before a reshard now.
func (k *cellKeeper) configured() {
	if k.cells > 0 && cells.Former(k.topic, k.id.N) {
		k.look()
	}
}

// tick looks again at cells that were left alone for long.
func (k *cellKeeper) tick() {
	if k.cells > 0 && k.now() >= k.looked.Add(cellsEvery) {
		k.look()
	}
}

func (k *cellKeeper) onDue(ms int64) {
	if k.tooEarly(ms) {
		k.setAlarm(store.Millis(ms))
		return
	}
	k.look()
}

// dozesUntil is 0 while there is something to do, and else how long there is not.
func (k *cellKeeper) dozesUntil() store.Millis {
	switch {
	case k.wanted || k.looking:
		return 0
	case k.cells > 0:
		return k.looked.Add(cellsEvery)
	}
	return math.MaxInt64
}

func (k *cellKeeper) flush() {
	if !k.wanted || k.looking || !k.claim.owned() {
		return
	}
	k.wanted, k.looking = false, true
	from := cells.Start{Fence: k.claim.fence(), Topic: k.topic, Progress: k.progress, Cells: k.cells}
	k.calls.Run(func(ctx context.Context) { k.done(k.looker.Look(ctx, from)) })
}

func (k *cellKeeper) idle() bool { return !k.looking }

func (k *cellKeeper) fenced() int {
	if k.looking {
		return 1
	}
	return 0
}

// lose leaves the cells to whoever claims the shard next.
func (k *cellKeeper) lose() {
	k.wanted, k.next = false, 0
	if k.alarm != nil {
		k.alarm.Remove(wakeAlarm)
	}
}

func (k *cellKeeper) stop() {
	if k.alarm != nil {
		k.closeQueue(k.alarm)
		k.alarm = nil
	}
}

// setAlarm has the keeper woken.
func (k *cellKeeper) setAlarm(at store.Millis) {
	if k.alarm == nil {
		k.alarm = k.openQueue(func(ms int64) { k.post(&cellsDue{ms}) })
	}
	k.alarm.Remove(wakeAlarm)
	k.alarm.Insert(wakeAlarm, int64(at))
}

// onKept learns what a look came to. own: this incarnation made it.
func (k *cellKeeper) onKept(m *cells.Outcome, own bool) {
	k.report(m)
	if !own {
		return
	}
	k.looking = false
	k.claim.noteError(m.Err)
	if !k.claim.owned() {
		return
	}
	if m.Err != nil || m.Stuck {
		k.lookLater()
		return
	}
	heard := max(k.progress.Heard, m.Progress.Heard)
	k.progress, k.next, k.looked = m.Progress, m.Next, k.now()
	k.progress.Heard = heard
	if m.Next != 0 {
		k.cells = max(k.cells, 1)
		k.setAlarm(m.Next)
	}
	if m.Again || heard > m.Progress.Taken {
		k.look()
	}
	if k.wanted {
		k.scheduleFlush()
	}
}

// report tells the others what a look did.
func (k *cellKeeper) report(m *cells.Outcome) {
	for _, made := range m.Made {
		if len(made.Fresh) > 0 {
			k.notifier.becamePending(made.Seq, made.Fresh)
		}
		k.notifier.learn(made.Seq, made.Known)
	}
	if len(m.Removed) > 0 {
		k.notifier.receive(&PendingGone{Ids: m.Removed})
	}
	if len(m.Cancelled) > 0 {
		k.post(&CancelHolds{Holds: m.Cancelled})
		k.Fleet.NotifyOwner(k.id, fleet.Notice{Cancels: []fleet.CancelNotice{{Shard: k.id, Holds: m.Cancelled}}})
	}
	for _, s := range m.Told {
		k.Fleet.NotifyOwner(s, fleet.Notice{Ended: []fleet.EndedNotice{{Shard: s}}})
	}
	if m.Repeated {
		k.tasks.Lower(m.Began)
	}
}

// lookLater looks again once a failing store may have come back.
func (k *cellKeeper) lookLater() {
	if k.later {
		return
	}
	k.later = true
	k.calls.Run(func(ctx context.Context) {
		Sleep(ctx, StoreRetry)
		k.post(&lookAgain{})
	})
}
