package actors_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/store"
)

// Punctuality is the product. Once a second the store is asked what is overdue, and each of
// it must have a cause: trouble, no owner, no room at a worker, a limit, the order of its key.
// What has none for longer than a node needs to hear of it is late, and a broken promise,
// though it comes in the end.

const (
	simLook      = time.Second
	simRecover   = 8 * time.Second  // from the end of a hold to its recovery, at most
	simAftermath = 15 * time.Second // of trouble: calls that are slow, and their repeats
)

// simLate is what is overdue without a cause.
type simLate struct {
	quiet  time.Time            // no trouble since, or not before
	moved  time.Time            // until then permits may be of holds that are over, or never were
	since  map[string]time.Time // by what is overdue: since when nothing explains it
	paused map[string]time.Time // until then nodes may not know that a topic delivers
	slow   time.Time            // until then calls may take long
	queue  int                  // the most that was overdue at a time, since nothing was

	binding map[string]bool // policies that hold something back
}

// excuse says that trouble may make things late until some time after it is over. The permit of a hold whose
// answer was lost lasts as long as the hold would.
func (s *sim) excuse(lasts time.Duration) {
	s.drain()
	putOff(&s.late.quiet, lasts+simAftermath+s.plan.gossipLag+2*s.plan.seqEvery)
	putOff(&s.late.moved, lasts+s.plan.visibility+simAftermath)
}

// pause says that a topic is paused, or goes on, of which nodes hear when they look.
func (l *simLate) pause(s *sim, topic string) {
	at := l.paused[topic]
	putOff(&at, simAftermath+s.plan.callTimeout+2*s.plan.housekeepEvery+s.plan.gossipLag)
	if l.paused == nil {
		l.paused = make(map[string]time.Time)
	}
	l.paused[topic] = at
}

// misled says that nodes may not know who owns a shard. What they settle of it meanwhile, they
// tell the wrong one, and the owner learns of it when the hold would have ended.
func (s *sim) misled() {
	putOff(&s.late.moved, s.plan.gossipLag+2*s.plan.visibility+simAftermath)
}

// putOff makes an instant one that is so far from now, unless it is later already.
func putOff(at *time.Time, by time.Duration) {
	if next := time.Now().Add(by); next.After(*at) {
		*at = next
	}
}

// watchLate looks at what is overdue until the run is over.
func (s *sim) watchLate() {
	s.late.binding = make(map[string]bool)
	s.excuse(0)
	var look func()
	look = func() {
		s.lookLate()
		s.after(simLook, look)
	}
	s.after(simLook, look)
}

func (s *sim) lookLate() {
	was := s.late.since
	s.late.since = map[string]time.Time{}
	defer s.lookPairs()
	if time.Now().Before(s.late.quiet) {
		return
	}
	for _, topic := range s.topics() {
		s.lookTopic(topic, was)
	}
	if time.Now().After(s.late.paused[simTopic]) {
		s.lookLimits(was)
	}
	if s.keepsCells() {
		s.lookSchedules(was)
		s.lookFlows(was)
		for _, sh := range s.shards() {
			if s.ownerOf(sh) != nil && s.faults.full[sh.For(0)] == 0 {
				s.lookWakes(sh, was)
			}
		}
	}
}

func (s *sim) lookTopic(topic string, was map[string]time.Time) {
	if t, err := s.mem.GetTopic(simContext, topic); err == nil && t.DeliveryPaused {
		s.late.pause(s, topic)
	}
	if time.Now().Before(s.late.paused[topic]) {
		return
	}
	shards, limited := s.shardsOf(topic), topic == simTopic && !s.limits.lifted
	held, due := make([][]store.Running, len(shards)), make([][]store.Entry, len(shards))
	overdue := 0
	free := s.room(topic)
	for i, sh := range shards {
		var err error
		if held[i], _, err = s.on(sh).Running(simContext, sh, "", 1000); err != nil {
			panic(err) // memstore fails only when it is closed
		}
		free = free && !(limited && s.plan.limits.Capped() && len(held[i]) > 0) // a cap may keep others back
		due[i] = s.overdue(sh)
		overdue += len(due[i])
	}
	// Under a rate what is overdue waits for all that was before it, also when most of that is gone.
	if limited {
		if s.late.queue = max(s.late.queue, overdue); overdue == 0 {
			s.late.queue = 0
		}
	}
	// While nodes do not know who owns a shard, or whether something is held, a hold that is over may keep its
	// permit.
	told := time.Now().After(s.late.moved)
	free = free && (told || !limited || s.permits() == 0)
	if s.plan.shared > 0 {
		free = free && !s.holding() && (told || s.inUse(store.CapKey(topic, store.NamespaceCap)) == 0)
	}
	for i, sh := range shards {
		s.lookShard(sh, held[i], due[i], free, s.slack(s.late.queue), was)
		if s.ownerOf(sh) != nil {
			s.lookExpired(sh, due[i], was)
		}
	}
}

// overdue are the first tasks of a shard that are due for longer than a look takes.
func (s *sim) overdue(sh store.Shard) []store.Entry {
	now := s.now(sh)
	_, found, err := s.on(sh).Window(simContext, sh, store.WindowQuery{To: now.Add(-simLook), Limit: 1000})
	if err != nil {
		panic(err) // as above
	}
	return found
}

// lookShard looks at what is held and overdue in a shard. free says that neither workers nor caps
// keep tasks back.
func (s *sim) lookShard(sh store.Shard, held []store.Running, due []store.Entry, free bool, slack time.Duration, was map[string]time.Time) {
	now := s.now(sh)
	owner := s.ownerOf(sh)
	for _, e := range due {
		switch {
		case owner == nil && s.anyUp():
			s.uncaused(was, s.plan.lease+30*time.Second, "%v has no owner, and %s waits", sh, e.ID)
		case owner != nil && free && s.isHead(sh, &e):
			if s.plan.policies && sh.Topic == simTopic && !s.limits.lifted {
				continue // see lookLimits
			}
			s.uncaused(was, slack, "%s is due for no reason, in %v of %s", e.ID, sh, owner.key)
		}
	}
	for _, r := range held {
		if owner != nil && r.Deadline < now && sh.Topic == simTopic && s.isHeldDoomed(r.ID) {
			s.excused("a task that was to become a dead letter for its rate waits for the watchdog")
			continue
		}
		if owner != nil && r.Deadline < now {
			s.uncaused(was, simRecover, "the hold of %s is over and not taken back, in %v of %s", r.ID, sh, owner.key)
		}
	}
}

// uncaused notes that nothing explains what is overdue, and is a breach when that was so for
// longer than a while.
func (s *sim) uncaused(was map[string]time.Time, most time.Duration, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	since := time.Now()
	if before, ok := was[what]; ok {
		since = before
	}
	s.late.since[what] = since
	if lasted := time.Since(since); lasted > most {
		s.broken("for %v: %s", lasted.Round(time.Millisecond), what)
	}
}

// slack is how long a node may take to hear of a task. Should a notice have got lost, it looks
// at the shard's seq twice before it reads, and seldom when nobody uses the topic. Tasks of a
// rate come one after the other, those of all shards. Of a window and another rate, tokens of one
// are lost to tasks that lack the other: there may come one task in each period.
func (s *sim) slack(overdue int) time.Duration {
	slack := *simSlack + s.unheard()
	if s.limits.lifted {
		return slack
	}
	for _, r := range []store.Rate{s.plan.limits.Rate, s.plan.limits.KeyRate} {
		if r.Limited() {
			slack += time.Duration(2*overdue)*r.Spacing() + 4*r.Period
		}
		if r.Kind == store.SlidingWindow && s.plan.limits.Rate.Limited() && s.plan.limits.KeyRate.Limited() {
			slack += time.Duration(overdue) * r.Period
		}
	}
	return slack
}

// holding reports whether a task of any topic is held.
func (s *sim) holding() bool {
	return slices.ContainsFunc(s.shards(), func(sh store.Shard) bool {
		held, _, err := s.on(sh).Running(simContext, sh, "", 1)
		if err != nil {
			panic(err) // as above
		}
		return len(held) > 0
	})
}

// permits is how many are in use, of the caps of the topic.
func (s *sim) permits() (n int) {
	for _, key := range []string{"", "k", "l", "m"} {
		n += s.inUse(store.LimitKey{Topic: simTopic, Key: key})
	}
	return n
}

// inUse is how many permits of a cap are.
func (s *sim) inUse(key store.LimitKey) int {
	got, err := s.on(store.Shard{}).Acquire(simContext, []store.Acquire{{Key: key}})
	if err != nil {
		panic(err)
	}
	return got[0].InUse
}

// isHead reports whether a task is the next of its ordering key, or has none.
func (s *sim) isHead(sh store.Shard, e *store.Entry) bool {
	key := e.Traits.Ordering()
	if key == "" {
		return true
	}
	_, found, err := s.on(sh).InOrder(simContext, sh, []string{key}, 1)
	return err == nil && len(found[0]) > 0 && found[0][0].ID == e.ID
}

// anyUp reports whether any node runs that could own a shard.
func (s *sim) anyUp() bool {
	return slices.ContainsFunc(s.nodes, func(n *simNode) bool { return n.up && !n.dead.Load() && !n.paused && !n.cut })
}

// ownerOf is the node that may hold tasks of a shard, nil when nobody may who is awake.
func (s *sim) ownerOf(sh store.Shard) *simNode {
	for _, n := range s.nodes {
		if n.dead.Load() || n.paused || n.cut || !n.up || len(n.fallen) > 0 {
			continue
		}
		for _, a := range n.actors {
			p, ok := actors.PeekShard(a)
			if !ok || p.Shard().For(0) != sh.For(0) {
				continue
			}
			if fence, owned := p.Fence(); owned && fence == s.fences[sh.For(0)] {
				return n
			}
		}
	}
	return nil
}

// room reports whether some worker of a topic has room for a task.
func (s *sim) room(topic string) bool {
	for _, n := range s.nodes {
		if n.dead.Load() || n.paused || !n.up {
			continue
		}
		for _, a := range n.actors {
			if t, ok := actors.PeekTopic(a); ok && t.Name() == topic && t.Room() > 0 {
				return true
			}
		}
	}
	return false
}
