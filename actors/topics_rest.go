package actors

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ddq-io/ddq/actors/cells"
	"github.com/ddq-io/ddq/actors/metrics"
	"github.com/ddq-io/ddq/actors/ordered"
	"github.com/ddq-io/ddq/actors/runtime"
	"github.com/ddq-io/ddq/actors/wakes"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// A topic whose first task is due long from now needs no actors, and rests: it is closed here
// until that task comes near. When that is, the store says. What a node knows of it is a hint,
// which counts while the store gives the same numbers of the shard, see wakes.Table, and the
// store is asked for those of all closed topics at each OpenActive.

const (
	// leastAhead is how long before its first task comes within the horizon a topic is opened at
	// least: the time of two looks at the store, should one fail.
	leastAhead = 30 * time.Second

	// wakesAtOnce is how many shards are asked for their first task at the same time, one for
	// each wakesEach of them at most.
	wakesAtOnce, wakesEach = 16, 64
)

// wakeTimes is when shards have something to do. It is safe for concurrent use.
type wakeTimes struct {
	rt    *runtime.Runtime
	mu    sync.Mutex
	table wakes.Table // guarded by mu
}

// shownDepths are the gauges of closed topics. It is safe for concurrent use; the zero value is
// ready.
type shownDepths struct {
	mu sync.Mutex
	of map[string]metrics.Depth // by topic; guarded by mu
}

// asleep are closed topics that have something in shards of this node.
type asleep struct {
	shards []store.Shard
	of     []*store.Topic // of each shard
	stats  []store.Stats
	wakes  []store.Millis
}

// opensAhead is how long before its first task a topic is opened. When very many topics come at
// once, to open them takes minutes.
func (c *Config) opensAhead() time.Duration {
	return c.Horizon + max(leastAhead, c.IdleAfter/2)
}

// staysOpen is within how long its first task keeps a topic open: to open it again soon is not
// worth closing it.
func (c *Config) staysOpen() time.Duration { return c.opensAhead() + c.IdleAfter/2 }

// near reports whether a shard has something to do within a time.
func near(st *store.Stats, wake store.Millis, within time.Duration) bool {
	return wake <= store.Millis(st.Now.UnixMilli()).Add(within)
}

// closedOurs are the shards of this node of topics that are closed.
func (s *Topics) closedOurs(topics []store.Topic) (a asleep) {
	for i := range topics {
		if ref, open := s.Opened(topics[i].Name); open && !ref.closing.Load() {
			continue
		}
		for _, shard := range place.Shards(&topics[i]) {
			if s.rt.Fleet.Owns(shard) {
				a.shards, a.of = append(a.shards, shard), append(a.of, &topics[i])
			}
		}
	}
	return a
}

// opening returns the topics that have something to do within a time, those first that have
// something to do first. During a reshard a topic has, whenever its tasks are due.
func (a *asleep) opening(ahead time.Duration) []*store.Topic {
	first := make(map[*store.Topic]store.Millis)
	for i, t := range a.of {
		wake := a.wakes[i]
		if wake != wakes.Never && place.Resharding(t) {
			wake = 0
		}
		if !near(&a.stats[i], wake, ahead) {
			continue
		}
		if was, there := first[t]; !there || wake < was {
			first[t] = wake
		}
	}
	return slices.SortedFunc(maps.Keys(first), func(t, u *store.Topic) int {
		return cmp.Or(cmp.Compare(first[t], first[u]), cmp.Compare(t.Name, u.Name))
	})
}

// at returns when shards with these numbers have something to do; those that could not be
// asked are at rest for now, and the error says so.
func (w *wakeTimes) at(ctx context.Context, shards []store.Shard, stats []store.Stats) ([]store.Millis, error) {
	found := make([]store.Millis, len(shards))
	var ask []int
	w.mu.Lock()
	for i := range shards {
		known := false
		if found[i], known = w.table.Wake(shards[i], &stats[i]); !known {
			ask = append(ask, i)
		}
	}
	w.mu.Unlock()
	return found, w.ask(ctx, ask, shards, stats, found)
}

// ask asks the store for the wake times of some of the shards, and learns them.
func (w *wakeTimes) ask(ctx context.Context, ask []int, shards []store.Shard, stats []store.Stats, found []store.Millis) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	size := max(wakesEach, (len(ask)+wakesAtOnce-1)/wakesAtOnce)
	each := func(some []int) {
		for _, i := range some {
			wake, err := w.askOne(ctx, shards[i], &stats[i])
			if found[i] = wake; err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = err
				return
			}
			w.mu.Lock()
			w.table.Learn(shards[i], &stats[i], wake)
			w.mu.Unlock()
		}
	}
	for _, i := range ask {
		found[i] = wakes.Never
	}
	for some := range slices.Chunk(ask, size) {
		if len(ask) <= size {
			each(some)
			break
		}
		wg.Go(func() { each(some) })
	}
	wg.Wait()
	return failed
}

// askOne asks the store when a shard has something to do.
func (w *wakeTimes) askOne(ctx context.Context, shard store.Shard, st *store.Stats) (store.Millis, error) {
	wake := wakes.Never
	if st.Pending > 0 {
		_, first, err := w.rt.Store.Window(ctx, shard, store.WindowQuery{To: store.MaxDue, Limit: 1})
		switch {
		case err != nil:
			return wakes.Never, err
		case len(first) == 0:
			return 0, nil // it has changed since
		}
		wake = first[0].Due
	}
	if st.Cells == 0 {
		return wake, nil
	}
	cell, err := cells.FirstWake(ctx, w.rt.Cells, shard)
	return min(wake, cell), err
}

// needed returns the topics that have something to do within a time in shards that are this
// node's, or should be, and the numbers of the shards.
func (w *wakeTimes) needed(ctx context.Context, shards []store.Shard, within time.Duration) (needed map[string]bool, stats []store.Stats, err error) {
	if stats, err = w.rt.CountsOf(ctx, shards); err != nil {
		return nil, nil, err
	}
	var ours []store.Shard
	var oursStats []store.Stats
	for i := range stats {
		if stats[i].Owner == w.rt.Name || w.rt.Fleet.Owns(shards[i]) {
			ours, oursStats = append(ours, shards[i]), append(oursStats, stats[i])
		}
	}
	wakes, err := w.at(ctx, ours, oursStats)
	if err != nil {
		return nil, nil, err
	}
	needed = make(map[string]bool)
	for i := range ours {
		if near(&oursStats[i], wakes[i], within) {
			needed[ours[i].Topic] = true
		}
	}
	return needed, stats, nil
}

// keep forgets all shards but these.
func (w *wakeTimes) keep(shards []store.Shard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.table.Keep(shards)
}

// openSoon is OpenActive in the background, when a clock of the store has jumped: what was far is
// near. It does not wait.
func (s *Topics) openSoon() {
	if !s.shown.any() {
		return
	}
	s.rt.Pool.Run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := s.OpenActive(ctx); err != nil {
			s.rt.Log.Debug("topics not looked through after a jump", "err", err) // the next look finds them
		}
	})
}

// showResting sets the gauges of topics that stay closed, and removes those of topics that have
// nothing any more.
func (s *Topics) showResting(ctx context.Context, a *asleep) {
	depths := make(map[string]metrics.Depth)
	for i := range a.stats {
		if d := (metrics.Depth{}).Plus(&a.stats[i]); d != (metrics.Depth{}) || a.stats[i].Cells > 0 {
			depths[a.of[i].Name] = depths[a.of[i].Name].Plus(&a.stats[i])
		}
	}
	for name, d := range ordered.All(s.shown.change(depths), cmp.Compare) {
		s.showDepth(ctx, name, d)
	}
	s.wakes.keep(a.shards)
}

// showDepth sets the gauges of a topic that is closed, or removes them.
func (s *Topics) showDepth(ctx context.Context, name string, d *metrics.Depth) {
	unlock, err := s.locks.Lock(ctx, name)
	if err != nil {
		return
	}
	defer unlock()
	if _, open := s.Opened(name); open {
		return
	}
	if d == nil {
		s.rt.Metrics.Forget(name)
		return
	}
	s.rt.Metrics.SetQueued(name, *d)
}

// change takes these for what is shown, and returns the gauges to set, and as nil those to remove.
func (s *shownDepths) change(depths map[string]metrics.Depth) map[string]*metrics.Depth {
	changed := make(map[string]*metrics.Depth)
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, d := range depths {
		if shown, is := s.of[name]; !is || shown != d {
			changed[name] = &d
		}
	}
	for name := range s.of {
		if _, is := depths[name]; !is {
			changed[name] = nil
		}
	}
	s.of = depths
	return changed
}

// forget has the gauges of a topic set again once it is closed: its actor removes them.
func (s *shownDepths) forget(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, topic)
}

// any reports whether a topic is closed here that may have to be opened.
func (s *shownDepths) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of) > 0
}
