package shard

import (
	"context"
	"math"

	"github.com/ddq-io/ddq/actors/agenda"
	"github.com/ddq-io/ddq/actors/shard/timers"
	"github.com/ddq-io/ddq/store"
)

// reload comes from the shard: see loader.reloadLater.
type reload struct{}

// What the loader's store calls came to, each in a CallDone.
type (
	windowLoaded struct{ loaded }
	laneLoaded   struct {
		lane *agenda.Lane
		loaded
	}
	lanesFound struct {
		heads []store.LaneHead
		err   error
	}
)

// What the wheel tells the shard.
type (
	// slotDue: tasks of this millisecond are due, or will be shortly.
	slotDue struct{ ms int64 }
	// exactDue: tasks of this millisecond are due that are not held ahead.
	exactDue struct{ ms int64 }
	// crowdsDue: it is time to hold what is due in certain milliseconds.
	crowdsDue struct{ ms int64 }
	// orderLook: it is time to look at ordering keys.
	orderLook struct{ ms int64 }
)

// loader reads the pending tasks that are due within the horizon into the agenda, and has
// those that are due in it become ready.
type loader struct {
	*shardState
	claim   *claimer
	orderer *orderer
	store   store.Reader
	wheel   timers.TaskWheel

	reloadFrom *store.Millis // see reloadLater; nil: none is pending
}

func newLoader(claim *claimer, orderer *orderer) loader {
	b := claim.shardState
	return loader{shardState: b, claim: claim, orderer: orderer, store: b.Store, wheel: timers.NewTaskWheel(&b.Timers, timers.Told{
		Due:    func(ms int64) { b.post(&slotDue{ms}) },
		Exact:  func(ms int64) { b.post(&exactDue{ms}) },
		Crowds: func(ms int64) { b.post(&crowdsDue{ms}) },
		Keys:   func(ms int64) { b.post(&orderLook{ms}) },
	})}
}

// receive handles a message of the loader. What a call of an earlier incarnation found says
// nothing about now.
func (l *loader) receive(message any, own bool) {
	if !own {
		return
	}
	switch m := message.(type) {
	case *slotDue:
		l.onSlot(store.Millis(m.ms))
	case *exactDue:
		l.onExact(store.Millis(m.ms))
	case *crowdsDue:
		l.onCrowds(m.ms)
	case *reload:
		l.reload()
	case *ClockJumped:
		if l.SawJump() && l.claim.owned() {
			l.tasks.Reread()
			l.load()
		}
	case *windowLoaded:
		l.onLoaded(m)
	case *laneLoaded:
		l.onLaneLoaded(m)
	case *lanesFound:
		l.onLanesFound(m)
	}
}

// finish ends the handling of a message: what it changed of the agenda has effects.
func (l *loader) finish() {
	l.tasks.Settle(l.Now())
	l.carryOut()
	l.countWheel()
}

// countWheel keeps the gauge of tasks on the wheel.
func (l *loader) countWheel() {
	if more := l.wheel.Change(); more != 0 {
		l.Metrics.Wheel.Add(float64(more))
	}
}

func (l *loader) stop() {
	l.wheel.Close()
	l.countWheel()
}

// onSlot makes the tasks of a millisecond ready, and those that may be held ahead with
// them.
func (l *loader) onSlot(ms store.Millis) {
	l.TooEarly(int64(ms - l.wheel.Lead()))
	now, busy := l.Now(), l.ref.Busy.Load()
	es := l.wheel.TakeDue(ms, ms)
	if l.wheel.Lead() > 0 && !busy {
		es = append(es, l.wheel.TakeDue(max(ms, now)+1, l.tasks.Until(now))...)
	}
	l.tasks.Due(now, es, busy)
}

// onExact makes the tasks of a millisecond ready that are not held ahead.
func (l *loader) onExact(ms store.Millis) {
	l.TooEarly(int64(ms))
	l.tasks.Due(l.Now(), l.wheel.TakeExact(ms), true)
}

// onCrowds makes the tasks ready of milliseconds in which many are due.
func (l *loader) onCrowds(ms int64) {
	now, busy, room := l.Now(), l.ref.Busy.Load(), int(l.ref.Room.Load())/l.topic.Shards+1
	for _, due := range l.wheel.TakeCrowds(ms) {
		if l.tasks.Crowd(now, due, room, busy) {
			l.tasks.CrowdDue(now, l.wheel.TakeDue(due, due))
		}
	}
}

// setLimits has the agenda go by the limits of the topic: tasks are held ahead of their due times unless
// limits decide about them then, and those of keys with limits are in nobody's way.
func (l *loader) setLimits() {
	ahead, limits := l.ref.Settings.HoldAhead, &l.topic.Limits
	if *limits != (store.TopicLimits{}) {
		ahead = 0
	}
	l.tasks.HoldAhead(ahead)
	l.wheel.SetLead(l.tasks.Lead())
	if l.tasks.LimitKeys(limits.KeyRate != store.Rate{}, limits.KeyConcurrency > 0) && l.claim.owned() {
		l.tasks.Reread()
		l.load()
	}
}

// carryOut starts what the agenda asks for.
func (l *loader) carryOut() {
	e := l.tasks.Effects()
	for _, keys := range e.Ask {
		l.orderer.ask(keys)
	}
	if e.Load != nil {
		query := *e.Load
		l.calls.Run(func(ctx context.Context) {
			l.done(&windowLoaded{l.read(ctx, query)})
		})
	}
	for _, next := range e.LoadLanes {
		l.calls.Run(func(ctx context.Context) {
			l.done(&laneLoaded{next.Lane, l.read(ctx, next.Query)})
		})
	}
	if e.ScanLanes {
		l.scanLanes()
	}
	e.Reset()
}

// load reads the next page of pending tasks into the window.
func (l *loader) load() {
	l.tasks.Load(l.Now())
	l.carryOut()
}

// loaded is a page of pending tasks, and whether more follow.
type loaded struct {
	entries []store.Entry
	more    bool
	err     error
}

func (l *loader) read(ctx context.Context, query store.WindowQuery) (p loaded) {
	_, p.entries, p.err = l.store.Window(ctx, l.id, query)
	p.more = len(p.entries) == query.Limit
	return p
}

func (l *loader) onLoaded(m *windowLoaded) {
	if m.err != nil {
		l.notLoaded(l.tasks.NotLoaded(), m.err)
		return
	}
	if l.claim.owned() {
		l.Follow()
	}
	l.countLoaded(l.tasks.Loaded(l.Now(), m.entries, m.more), &m.loaded)
	l.carryOut()
}

func (l *loader) onLaneLoaded(m *laneLoaded) {
	if m.err != nil {
		l.notLoaded(l.tasks.LaneNotLoaded(m.lane), m.err)
		return
	}
	l.countLoaded(l.tasks.LaneLoaded(l.Now(), m.lane, m.entries, m.more), &m.loaded)
}

func (l *loader) countLoaded(counts bool, p *loaded) {
	if counts {
		l.Metrics.Loaded.Add(float64(len(p.entries)))
	}
}

// notLoaded acts on a page that could not be read, unless it does not matter any more.
func (l *loader) notLoaded(matters bool, err error) {
	if matters {
		l.claim.noteError(err)
		l.reloadLater(math.MaxInt64)
	}
}

// reloadLater has what is due at from or later read again once a failing store may have come
// back. At most one such reading is pending.
func (l *loader) reloadLater(from store.Millis) {
	if l.reloadFrom != nil {
		*l.reloadFrom = min(*l.reloadFrom, from)
		return
	}
	l.reloadFrom = &from
	l.calls.Run(func(ctx context.Context) {
		Sleep(ctx, StoreRetry)
		l.post(&reload{})
	})
}

// reload does what later was asked for.
func (l *loader) reload() {
	if l.reloadFrom == nil { // it was asked of an earlier incarnation
		return
	}
	l.tasks.Lower(*l.reloadFrom)
	l.reloadFrom = nil
	l.tasks.Refresh(l.Now())
	l.carryOut()
}

// refresh goes on with the window, and looks for lanes behind a backlog.
func (l *loader) refresh() {
	l.tasks.Refresh(l.Now())
	l.tasks.ScanBehind()
	l.carryOut()
}

// scanLanes asks the store which lanes there are.
func (l *loader) scanLanes() {
	l.calls.Run(func(ctx context.Context) {
		m := &lanesFound{}
		for after := (*store.Lane)(nil); m.err == nil; {
			var page []store.LaneHead
			page, m.err = l.store.Lanes(ctx, l.id, after, agenda.LanesPerPage)
			m.heads = append(m.heads, page...)
			if len(page) < agenda.LanesPerPage {
				break
			}
			after = &page[len(page)-1].Lane
		}
		if m.err != nil {
			Sleep(ctx, StoreRetry)
		}
		l.done(m)
	})
}

func (l *loader) onLanesFound(m *lanesFound) {
	if m.err == nil {
		l.tasks.LanesFound(l.Now(), m.heads)
		return
	}
	again := l.tasks.LanesNotFound()
	l.claim.noteError(m.err) // which may end the claim
	if again {
		l.tasks.ScanLanes()
		l.carryOut()
	}
}
