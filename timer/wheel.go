package timer

import (
	"log/slog"
	"sync"
	"time"
)

// heartbeat is how often the wheel proves to be alive, and takes in what has
// come near. lateBeats more of them without a sign of life and it is dead.
const (
	heartbeat = time.Second
	lateBeats = 3
)

// Turns: the default takes 65.5 s; the least must leave a heartbeat well
// within half a turn.
const (
	tick         = time.Millisecond
	defaultSlots = 65536
	leastSlots   = 4096
)

// pagesPerTurn says how coarsely the registry decides what is near.
const pagesPerTurn = 8

// Config says how a Wheel keeps time. The zero value works.
type Config struct {
	// Now is the clock that due times are on. It may be off the machine's clock
	// by any amount, must be cheap and safe for concurrent use, and must not
	// call the wheel. Defaults to time.Now.
	Now func() time.Time

	// Slots is how many ticks of 1 ms make one turn of the library's wheel. A
	// slot costs 90 bytes. What is due later than half a turn waits outside it,
	// for a little more memory and one look a second, so a turn should exceed
	// twice the farthest due time that is usual. At least 4096; defaults to
	// 65536.
	Slots int

	// Logger may be nil.
	Logger *slog.Logger
}

// Wheel tells queues which of their slots have come due. One serves a node; all
// methods are safe for concurrent use. It owns the goroutines of the library's
// wheel, one that arms the library's timers and one that watches over both; all
// are gone once Close returns.
type Wheel struct {
	now  func() time.Time
	log  *slog.Logger
	turn time.Duration
	page int64 // ms in a page

	quit    chan struct{}
	suspect chan struct{} // asks watch to look at the machine's clock now
	watcher sync.WaitGroup
	drivers sync.WaitGroup // those that are stopping
	calls   sync.WaitGroup // of notify, and naps; added to under mu while not closed
	closing sync.Once
	naps    naps

	mu       sync.Mutex
	closed   bool            // guarded by mu, as is all below
	pages    map[int64]*page // by ms / page
	arms     uint64          // number of the latest arm
	driver   *driver
	checked  time.Time // when watch last looked at the machine's clock
	rebuilds int64
}

// page is a stretch of the registry: the slots of some seconds. Those of a near
// page are armed, those of another wait until the page is near.
type page struct {
	near  bool
	slots map[int64]*nodeSlot // by ms
}

// nodeSlot is one millisecond of the node, with the queues that have entries
// in it. It stays until its timer fires even when all of them have left.
type nodeSlot struct {
	arm    uint64 // the arm that may fire it, older ones are stale; 0: not armed
	queues []*Queue
}

// New returns a running wheel. Close stops it.
func New(cfg Config) *Wheel {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Slots == 0 {
		cfg.Slots = defaultSlots
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	slots := max(cfg.Slots, leastSlots)
	w := &Wheel{
		now:     cfg.Now,
		log:     cfg.Logger,
		turn:    time.Duration(slots) * tick,
		page:    int64(slots) / pagesPerTurn,
		quit:    make(chan struct{}),
		suspect: make(chan struct{}, 1),
		pages:   map[int64]*page{},
		checked: time.Now(),
	}
	w.driver = w.startDriver()
	w.watcher.Go(w.watch)
	return w
}

// Turn returns how far one turn of the wheel reaches.
func (w *Wheel) Turn() time.Duration { return w.turn }

// Rebuilds returns how often the library's wheel has been replaced.
func (w *Wheel) Rebuilds() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rebuilds
}

// Close stops the wheel and waits for it, and for any notify under way: no
// queue is notified once it returns. So notify must not call it. Twice is fine.
func (w *Wheel) Close() { w.closing.Do(w.close) }

func (w *Wheel) close() {
	w.mu.Lock()
	w.closed, w.pages = true, nil // from here on nothing is claimed or armed
	w.mu.Unlock()
	close(w.quit)
	w.watcher.Wait() // from here on nothing replaces the driver
	w.drivers.Go(w.driver.close)
	w.awaitDrivers()
	w.calls.Wait()
	w.naps.close()
}

// Reset arms every slot anew. Call it when Now has jumped; a drift of a
// millisecond or so needs none, as no slot fires before Now says so.
func (w *Wheel) Reset() {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rearm(now)
}

// rearm makes every arm stale, and arms what is near at now. Called with mu held.
func (w *Wheel) rearm(now time.Time) {
	for n, p := range w.pages {
		p.near = w.isNear(n, now)
		for ms, s := range p.slots {
			s.arm = 0
			if p.near {
				w.arm(ms, s)
			}
		}
	}
}

// join notes that q has entries in a millisecond. What is past due is fired by
// the same way, at once.
func (w *Wheel) join(q *Queue, ms int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	n := ms / w.page
	p := w.pages[n]
	if p == nil {
		p = &page{near: w.isNear(n, w.now()), slots: map[int64]*nodeSlot{}}
		w.pages[n] = p
	}
	s := p.slots[ms]
	if s == nil {
		s = new(nodeSlot)
		p.slots[ms] = s
		if p.near {
			w.arm(ms, s)
		}
	}
	s.queues = append(s.queues, q)
}

// leave notes that q has no entries in a millisecond any more. A timer that is
// armed stays armed: whether the library would stop it is not sure, and that it
// fires does no harm.
func (w *Wheel) leave(q *Queue, ms int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pages[ms/w.page]
	if p == nil {
		return
	}
	s := p.slots[ms]
	if s == nil {
		return
	}
	s.drop(q)
	if len(s.queues) == 0 && s.arm == 0 {
		w.forget(ms, p)
	}
}

func (s *nodeSlot) drop(q *Queue) {
	for i, other := range s.queues {
		if other == q {
			last := len(s.queues) - 1
			s.queues[i], s.queues[last] = s.queues[last], nil
			s.queues = s.queues[:last]
			return
		}
	}
}

// forget takes a slot out of the registry. Called with mu held.
func (w *Wheel) forget(ms int64, p *page) {
	delete(p.slots, ms)
	if len(p.slots) == 0 {
		delete(w.pages, ms/w.page)
	}
}

// isNear tells whether a page begins within half a turn: so its end lies well
// within a turn, which the library needs, and a heartbeat late is no harm.
func (w *Wheel) isNear(n int64, now time.Time) bool {
	return n <= now.Add(w.turn/2).UnixMilli()/w.page
}

// arm has the driver set a timer for a slot. Called with mu held.
func (w *Wheel) arm(ms int64, s *nodeSlot) {
	w.arms++
	s.arm = w.arms
	w.driver.arm(ms, w.arms)
}

// fire notifies the queues of a slot once it is due by Now. The library fires a
// moment before, which is slept out here; more than a moment is given back to
// it. An arm that has been replaced meanwhile does nothing.
func (w *Wheel) fire(ms int64, arm uint64) {
	for {
		queues, rest := w.claim(ms, arm, w.now())
		if rest == 0 {
			w.notify(queues, ms)
			return
		}
		w.naps.sleep(rest)
		w.calls.Done()
	}
}

func (w *Wheel) notify(queues []*Queue, ms int64) {
	for _, q := range queues {
		q.notify(ms)
		w.calls.Done()
	}
}

// claim takes a due slot out of the registry and returns its queues, each
// counted in calls. Of a slot that is nearly due it returns the rest to sleep,
// counted too. It returns nothing when there is nothing to do for this arm.
func (w *Wheel) claim(ms int64, arm uint64, now time.Time) (queues []*Queue, rest time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pages[ms/w.page]
	if p == nil {
		return nil, 0
	}
	s := p.slots[ms]
	if s == nil || s.arm != arm {
		return nil, 0
	}
	rest = time.UnixMilli(ms).Sub(now)
	switch {
	case rest <= 0 || len(s.queues) == 0:
		w.forget(ms, p)
		w.calls.Add(len(s.queues))
		return s.queues, 0
	case rest <= napLimit:
		w.calls.Add(1)
		return nil, rest
	}
	w.postpone(ms, p, s, now)
	return nil, 0
}

// postpone arms again a slot that fired early: Now has moved since it was
// armed, or the machine's clock has. Called with mu held.
func (w *Wheel) postpone(ms int64, p *page, s *nodeSlot, now time.Time) {
	if stepped(w.checked, time.Now()) {
		signal(w.suspect)
	}
	if !w.isNear(ms/w.page, now) {
		s.arm, p.near = 0, false
		return
	}
	w.arm(ms, s)
}

// beat is the heartbeat of d: it takes in the pages that have come near.
func (w *Wheel) beat(d *driver) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.driver != d {
		return
	}
	d.alive()
	for n, p := range w.pages {
		if p.near || !w.isNear(n, now) {
			continue
		}
		p.near = true
		for ms, s := range p.slots {
			if s.arm == 0 {
				w.arm(ms, s)
			}
		}
	}
}
