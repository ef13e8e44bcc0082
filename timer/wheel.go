package timer

import (
	"log/slog"
	"sync"
	"time"
)

// heartbeat is how often the wheel proves to be alive, and reads what has
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

	quit    chan struct{}
	suspect chan struct{} // asks watch to look at the machine's clock now
	watcher sync.WaitGroup
	drivers sync.WaitGroup // those that are stopping
	fires   sync.WaitGroup // under way; added to under mu while not closed
	closing sync.Once
	naps    naps

	mu       sync.Mutex
	closed   bool // guarded by mu, as is all below
	slots    registry
	arms     uint64 // number of the latest arm
	driver   *driver
	checked  time.Time // when watch last looked at the machine's clock
	rebuilds int64
	hand     hand // of a wheel that is turned by hand
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
		quit:    make(chan struct{}),
		suspect: make(chan struct{}, 1),
		slots:   newRegistry(int64(slots)),
		checked: time.Now(),
	}
	w.mu.Lock()
	w.driver = w.startDriver()
	w.mu.Unlock()
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
	w.closed, w.slots.pages = true, nil // from here on nothing is due or armed
	w.mu.Unlock()
	close(w.quit)
	w.watcher.Wait() // from here on nothing replaces the driver
	if w.driver == nil {
		return
	}
	w.drivers.Go(w.driver.close)
	w.awaitDrivers()
	w.fires.Wait()
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
	for at, p := range w.slots.pages {
		p.near = w.isNear(at, now)
		for n, s := range p.stretches {
			s.arm = 0
			switch {
			case s.used == 0:
				w.slots.forget(n)
			case p.near:
				w.arm(n, s)
			}
		}
	}
}

// join notes that q has entries in a millisecond. What is past due goes the
// same way, and is notified at once.
func (w *Wheel) join(q *Queue, ms int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	n := stretchOf(ms)
	p, s := w.slots.find(n)
	if p == nil {
		at := w.slots.pageOf(n)
		p = &page{near: w.isNear(at, w.now()), stretches: map[int64]*stretch{}}
		w.slots.pages[at] = p
	}
	if s == nil {
		s = new(stretch)
		p.stretches[n] = s
	}
	s.add(ms, q)
	w.hand.join(ms)
	if p.near && (s.arm == 0 || ms < s.next) {
		w.arm(n, s)
	}
}

// leave notes that q has no entries in a millisecond any more. A timer that is
// set stays set: whether the library would stop it is not sure, and that it
// fires does no harm.
func (w *Wheel) leave(q *Queue, ms int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := stretchOf(ms)
	_, s := w.slots.find(n)
	if s == nil {
		return
	}
	s.drop(ms, q)
	w.hand.leave(ms)
	if s.used == 0 && (s.arm == 0 || w.driver == nil) {
		w.slots.forget(n)
	}
}

// isNear tells whether a page begins within half a turn: so its end lies well
// within a turn, which the library needs, and a heartbeat late is no harm.
func (w *Wheel) isNear(at int64, now time.Time) bool {
	return at <= w.slots.pageOf(stretchOf(now.Add(w.turn/2).UnixMilli()))
}

// arm has the driver see to a stretch. Called with mu held.
func (w *Wheel) arm(n int64, s *stretch) {
	if w.driver == nil { // turned by hand
		s.arm = manualArm
		s.next, _ = s.first(n)
		return
	}
	w.arms++
	s.arm = w.arms
	s.next, _ = s.first(n)
	w.driver.arm(n, s.arm)
}

// beat is the heartbeat of d: it reads the pages that have come near.
func (w *Wheel) beat(d *driver) {
	now := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.driver != d {
		return
	}
	d.alive()
	for at, p := range w.slots.pages {
		if p.near || !w.isNear(at, now) {
			continue
		}
		p.near = true
		for n, s := range p.stretches {
			if s.arm == 0 {
				w.arm(n, s)
			}
		}
	}
}
