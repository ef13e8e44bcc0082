package shard

import (
	"context"
	"math"
	"time"

	"github.com/ddq-io/ddq/actors/cells"
	"github.com/ddq-io/ddq/actors/fleet"
	"github.com/ddq-io/ddq/actors/shard/outbox"
	"github.com/ddq-io/ddq/actors/shard/timers"
	"github.com/ddq-io/ddq/store"
)

const (
	cellsEvery = time.Minute      // the longest that cells are not looked at: another node may have changed when one wakes
	farWake    = 10 * time.Minute // that a schedule wakes so much later needs no look: crowds are found later than that
	maxRest    = time.Second      // the longest that parcels are gathered, or put off
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
// cell is kept in memory between two looks, but when the next one wakes, and workflows as they were
// committed, which each look compares with their cells.
//
// Invariants:
//   - one look is in flight at most, and none that is not under the claim
//   - what changes while it is begins the next one
type cellKeeper struct {
	*shardState
	claim    *claimer
	notifier *notifier
	looker   *cells.Looker // nil: the store keeps none
	alarm    timers.Alarm

	wanted   bool         // a look is to begin
	whole    bool         // and not only at what parcels are for
	changed  bool         // and others may have changed cells
	looking  bool         // and is in flight
	next     store.Millis // when a cell wakes, as the last look found it; 0: none does
	looked   store.Millis // when that was
	cells    int64        // that the shard has, or 1 when it has some
	hint     int64        // how far the in-box is said to be, since the last look began
	stale    bool         // and is of a store that was set back since
	later    bool         // a lookAgain comes
	rests    store.Millis // until when parcels are gathered, or put off
	putOff   bool         // they are, as tasks are ready
	owed     int64        // up to this number they have been, and are not any more
	progress cells.Progress
}

func newCellKeeper(claim *claimer, notifier *notifier) cellKeeper {
	b := claim.shardState
	return cellKeeper{
		shardState: b, claim: claim, notifier: notifier, looker: newLooker(b), alarm: b.NewAlarm(func(ms int64) { b.post(&cellsDue{ms}) }),
	}
}

// newLooker returns what looks at the cells of a shard; nil for a store that keeps none.
func newLooker(b *shardState) *cells.Looker {
	if b.Cells == nil {
		return nil
	}
	return cells.NewLooker(cells.Shard{
		ID: b.id, Store: b.Cells, Tasks: b.Store, Counts: b.CountsOf, TopicOf: b.topicOf, Calendars: b.Calendars.Fresh, Definitions: b.Definitions, Workflows: b.Workflows, Resolve: b.Resolve,
		Now: b.Now, Random: b.Random, Made: func(r *cells.Runs) { b.post(r) }, Metrics: &b.Metrics.Schedules, Flows: &b.Metrics.Workflows, Knobs: b.ref.Settings.Knobs, Log: b.Log,
	})
}

// receive handles a message of the keeper.
func (k *cellKeeper) receive(message any, own bool) {
	switch m := message.(type) {
	case *cellsDue:
		if k.alarm.Rings(m.ms) {
			k.look()
		}
	case *CellsChanged:
		k.onChanged(m.Wake)
	case *lookAgain:
		k.later = false
		k.look()
	case *ParcelsHeard:
		k.heard(m.In)
	case *cells.Runs:
		k.tell(m)
	case *cells.Outcome:
		k.onKept(m, own)
	}
}

// own begins to keep the cells of a shard that was claimed.
func (k *cellKeeper) own() {
	k.progress, k.next, k.rests, k.putOff, k.owed = cells.Progress{}, 0, 0, false, 0
	k.lookAnew()
}

// discard has what the look in flight finds not count.
func (k *cellKeeper) discard() { k.stale = k.looking }

// look has a look begin, now or behind the one that is in flight.
func (k *cellKeeper) look() {
	k.whole = true
	k.begin()
}

// lookAnew looks at cells that others may have changed.
func (k *cellKeeper) lookAnew() {
	k.changed = true
	k.look()
}

func (k *cellKeeper) begin() {
	if k.looker != nil && k.claim.owned() {
		k.wanted = true
		k.scheduleFlush()
	}
}

// heard looks at an in-box that has come to a number. How far it is says the look: a store
// that was set back has fewer than were told of.
func (k *cellKeeper) heard(in int64) {
	if in > max(k.progress.Heard, k.hint) {
		k.hint = in
		k.lookAtParcels()
	}
}

// lookAtParcels looks once parcels are gathered. A clock that was set back ends that. Which of them can be
// put off a look says, too.
func (k *cellKeeper) lookAtParcels() {
	if rest := k.rests.Sub(k.Now()); k.putOff || rest <= 0 || rest > maxRest {
		k.begin()
		return
	}
	k.wakeBy(k.rests)
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

// onChanged looks at cells that a call of this node changed, or has their owner look. Of a schedule that
// wakes much later only that is noted; a look that is in flight may not have seen it.
func (k *cellKeeper) onChanged(wake store.Millis) {
	if k.looker != nil && k.claim.owned() && !k.looking && wake >= k.Now().Add(farWake) {
		k.changed, k.cells = true, max(k.cells, 1)
		k.progress.NotePut(wake)
		k.wakeBy(wake)
		return
	}
	k.lookAnew()
	if k.looker != nil && !k.claim.owned() && !k.Fleet.Alone() {
		k.Fleet.NotifyOwner(k.id, fleet.Notice{Ended: []fleet.EndedNotice{{Shard: k.id}}})
	}
}

// endedElsewhere learns that another node ended tasks, which may have left parcels, or no
// task but changed a cell.
func (k *cellKeeper) endedElsewhere(none bool) {
	switch {
	case none:
		k.lookAnew()
	case k.cells > 0:
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
	if k.cells > 0 && k.Now() >= k.looked.Add(cellsEvery) {
		k.look()
	}
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

// busy reports whether tasks are ready, which go before what nothing hangs on. What was put off before is
// not put off again.
func (k *cellKeeper) busy() bool { return k.tasks.ReadyLen() > 0 && k.progress.Taken >= k.owed }

func (k *cellKeeper) flush() {
	if k.putOff && !k.looking && !k.busy() {
		k.look()
	}
	if !k.wanted || k.looking || !k.claim.owned() {
		return
	}
	from := cells.Start{Fence: k.claim.fence(), Topic: k.topic, Told: !k.whole, Busy: k.busy(), Changed: k.changed, Progress: k.progress, Cells: k.cells}
	k.wanted, k.whole, k.changed, k.looking, k.hint = false, false, false, true, 0
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
	k.alarm.Clear()
}

func (k *cellKeeper) stop() { k.alarm.Close() }

// onKept learns what a look came to. own: this incarnation made it.
func (k *cellKeeper) onKept(m *cells.Outcome, own bool) {
	k.report(m)
	if !own {
		return
	}
	stale := k.stale
	k.looking, k.stale = false, false
	k.claim.noteError(m.Err)
	if !k.claim.owned() {
		return
	}
	if stale {
		k.look()
		return
	}
	if m.Err != nil || m.Stuck {
		k.lookLater()
		return
	}
	if k.putOff && !m.PutOff {
		k.owed = k.progress.Heard
	}
	k.progress, k.next, k.looked = m.Progress, m.Next, k.Now()
	k.Metrics.Schedules.Dropped.Add(float64(m.Dropped))
	if m.Next != 0 {
		k.cells = max(k.cells, 1)
		k.alarm.Set(m.Next)
	}
	k.rest(m)
	if m.Again {
		k.look()
	} else if k.hint > m.Progress.Heard || m.Progress.Heard > m.Progress.Taken && !m.PutOff {
		k.lookAtParcels()
	}
	if k.wanted || k.putOff {
		k.scheduleFlush()
	}
}

// rest has parcels be gathered before the next look, if a look says that they may.
func (k *cellKeeper) rest(m *cells.Outcome) {
	now := k.Now()
	switch {
	case !m.PutOff:
		k.rests = now.Add(min(m.Rest, maxRest))
	case !k.putOff:
		k.rests = now.Add(maxRest)
	}
	if k.putOff = m.PutOff; k.putOff {
		k.wakeBy(k.rests)
	}
	if m.Tidy > 0 {
		k.wakeBy(now.Add(m.Tidy))
	}
}

// wakeBy has the keeper woken at a time, or earlier.
func (k *cellKeeper) wakeBy(at store.Millis) {
	if k.next == 0 || at < k.next {
		k.next = at
		k.alarm.Set(at)
	}
}

// tell tells the others what a commit did. What it took back comes first: it may have made a task of the
// same id anew.
func (k *cellKeeper) tell(made *cells.Runs) {
	if len(made.Gone) > 0 {
		k.notifier.gone(made.Seq, made.Gone)
	}
	if len(made.Fresh) > 0 {
		k.notifier.becamePending(made.Seq, made.Fresh)
	}
	k.notifier.learn(made.Seq, made.Known)
}

// report tells the others what a look did.
func (k *cellKeeper) report(m *cells.Outcome) {
	for i := range m.Made {
		k.tell(&m.Made[i])
	}
	if len(m.Cancelled) > 0 {
		k.post(&CancelHolds{Holds: m.Cancelled})
		k.Fleet.NotifyOthers(fleet.Notice{Cancels: []fleet.CancelNotice{{Shard: k.id, Holds: m.Cancelled}}})
	}
	for _, s := range m.Told {
		k.Fleet.NotifyOwner(s, fleet.Notice{Ended: []fleet.EndedNotice{{Shard: s}}})
	}
	for i := range m.Elsewhere {
		k.Topics.TellCommitted(&m.Elsewhere[i])
	}
	if len(m.Sent) > 0 {
		k.post(&outbox.Sent{Queues: m.Sent})
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
