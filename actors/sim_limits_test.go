package actors_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ddq-io/ddq/api/service"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
)

// In some runs limits are those that users have: a rate of one an hour as well as of a thousand a second, caps,
// keys of which one has most of the tasks, and dead letters in place of waiting. What follows from them is told
// here by books that know the whole fleet: what was held when, and nothing that a node believes. No rate and no cap
// is ever exceeded, and limits hold back no more than they say: when a worker has room and tasks of some keys have all
// that they need, one of them goes. When the producers stop the limits are lifted, so that everything ends.

// simLimits are the books of the first topic's limits.
type simLimits struct {
	topic  *simTokens
	keys   map[string]*simTokens
	traits map[string]*store.Traits // of tasks
	went   map[simClass]time.Time   // when one was last held
	doomed map[string]time.Time     // when it was decided that tasks become dead letters that are held: no worker gets them
	over   map[string][]time.Time   // by rate key: when it was, of those that are not held yet
	holds  map[store.Token]bool     // that were written down
	lifted bool
}

// simClass is what limits tell tasks apart by.
type simClass struct{ rate, cap string }

// simTokens are those of one rate, by what was held.
type simTokens struct {
	store.Rate
	level float64 // of a bucket, at the most
	sure  float64 // and at the least: nodes that had taken some may be gone with them
	at    time.Time
	held  []time.Time   // of a window
	lasts time.Duration // the longest that a token of it has lasted: it counts for a period more
	way   []time.Time   // when those end that tasks have which are on their way to a hold
	spare []time.Time   // when tasks were not held that had one
	owed  []time.Time   // of a window: when tasks were not held whose tokens have not gone back yet
}

// simRemembers is for how long tokens are known that do not count any more.
const simRemembers = 10 * time.Second

// drawPolicies draws limits, from a source of its own like drawIdle.
func (s *sim) drawPolicies(p *simPlan) {
	rng := rand.New(rand.NewPCG(s.seed, 52))
	if rng.Float64() < 0.6 && !s.plan.lies.ofLimits() || p.rewind > 0 || p.drops > 0 {
		return
	}
	p.policies, p.limits = true, store.TopicLimits{}
	p.keys = simLogUniform(rng, 12)
	p.skewed = rng.IntN(3) > 0
	if rng.IntN(2) == 0 {
		p.limits.KeyRate = simDrawRate(rng)
	}
	if rng.IntN(3) == 0 {
		p.limits.Rate = simDrawRate(rng)
	}
	if rng.IntN(2) == 0 {
		p.limits.Concurrency = simLogUniform(rng, 8)
	}
	if rng.IntN(3) == 0 {
		p.limits.KeyConcurrency = simLogUniform(rng, 3)
	}
	p.limits.DeadLetter = rng.IntN(3) == 0
	if rng.IntN(2) == 0 { // where each rule about limits counts, see simKnown
		p.nodes = 1
	}
	if rng.IntN(2) == 0 { // nobody is gone with tokens
		p.faults = 0
	}
	if p.budget > 0 { // a few tasks of each key that lacks something fit
		p.budget += 64
	}
	if p.bound = rng.IntN(2) == 0; !p.bound {
		return
	}
	p.limits.Concurrency, p.budget = 1+rng.IntN(3), 0
	p.pace, p.burst = simBetween(rng, time.Second, 5*time.Second), 5
	if !p.limits.KeyRate.Limited() && !p.limits.Rate.Limited() {
		p.limits.KeyRate = simDrawRate(rng)
	}
}

// simDrawRate draws a rate from one an hour to a thousand a second.
func simDrawRate(rng *rand.Rand) store.Rate {
	r := store.Rate{Kind: store.TokenBucket, Count: 1, Period: time.Hour, Burst: simLogUniform(rng, 10)}
	switch rng.IntN(4) {
	case 1:
		r.Count, r.Period = simLogUniform(rng, 60), time.Minute
	case 2:
		r.Count, r.Period = simLogUniform(rng, 1000), time.Second
	case 3:
		r.Kind, r.Burst = store.SlidingWindow, 0
		r.Count, r.Period = simLogUniform(rng, 20), simBetween(rng, 200*time.Millisecond, 2*time.Second)
	}
	return r
}

// keyed gives a task its keys.
func (s *sim) keyed(t *simTask) {
	if t.traits == nil {
		t.traits = new(store.Traits)
	}
	draw := func(first rune) string {
		n := s.rng.IntN(s.plan.keys)
		if s.plan.skewed && s.chance(0.9) {
			n = 0
		}
		return string(first + rune(n))
	}
	t.traits.RateKey, t.traits.ConcurrencyKey = draw('a'), draw('A')
	s.limits.traits[t.id] = t.traits
}

func (s *sim) openLimits() {
	s.limits = simLimits{keys: make(map[string]*simTokens), traits: make(map[string]*store.Traits), went: make(map[simClass]time.Time), doomed: make(map[string]time.Time), over: make(map[string][]time.Time), holds: make(map[store.Token]bool)}
	if s.plan.policies {
		s.limits.topic = newSimTokens(s.plan.limits.Rate)
		s.at(s.start.Add(s.plan.active), s.lift)
	}
}

func newSimTokens(r store.Rate) *simTokens {
	return &simTokens{Rate: r, level: float64(r.Most()), sure: float64(r.Most()), at: time.Now()}
}

// classOf says which limits a task is under.
func (s *sim) classOf(id string) simClass {
	if t := s.limits.traits[id]; t != nil {
		return simClass{t.RateKey, t.ConcurrencyKey}
	}
	return simClass{}
}

func (s *sim) tokensOf(key string) *simTokens {
	if s.limits.keys[key] == nil {
		s.limits.keys[key] = newSimTokens(s.plan.limits.KeyRate)
	}
	return s.limits.keys[key]
}

// pass brings a bucket to the present.
func (t *simTokens) pass(now time.Time) {
	came := float64(now.Sub(t.at)) / float64(t.Spacing())
	t.level, t.sure, t.at = min(float64(t.Most()), t.level+came), min(float64(t.Most()), t.sure+came), now
	t.way = slices.DeleteFunc(t.way, func(end time.Time) bool { return now.Sub(end) > simRemembers }) // nobody came
	t.spare = slices.DeleteFunc(t.spare, func(at time.Time) bool { return now.Sub(at) > simRemembers })
	t.owed = slices.DeleteFunc(t.owed, func(at time.Time) bool { return now.Sub(at) > t.Period+store.MaxTokenLife }) // its node is gone
	for len(t.held) > 0 && now.Sub(t.held[0]) > t.Period+store.MaxTokenLife+t.Slot()+simRemembers {
		t.held = t.held[1:]
	}
}

// has reports whether there is a token for a task that comes now.
func (t *simTokens) has(now time.Time) bool { return t.left(now, now) >= 1 }

// had reports whether there was one at a moment, beside those of tasks that were on their way to a hold.
func (t *simTokens) had(now, then time.Time) bool {
	way := len(t.way) + len(t.owed)
	for _, at := range t.spare {
		if at.After(then) {
			way++
		}
	}
	return t.left(now, then)-float64(way) >= 1
}

// left is how many tokens there are now that were there at a moment.
func (t *simTokens) left(now, then time.Time) float64 {
	switch t.pass(now); {
	case !t.Limited():
		return math.Inf(1)
	case t.Kind == store.SlidingWindow:
		n := 0
		for _, at := range t.held {
			if then.Sub(at) <= t.Period+max(2*t.Slot(), t.lasts) {
				n++
			}
		}
		return float64(t.Count - n)
	}
	return t.sure - float64(now.Sub(then))/float64(t.Spacing())
}

// take takes one, and reports whether there are more than there may be. A token of a bucket may be used for half a
// second.
func (t *simTokens) take(now time.Time) bool {
	t.pass(now)
	t.level, t.sure = t.level-1, t.sure-1
	t.landed()
	t.held = append(t.held, now)
	switch {
	case !t.Limited():
		return false
	case t.Kind == store.SlidingWindow:
		n := 0
		for _, at := range t.held {
			if now.Sub(at) < t.Period-time.Millisecond {
				n++
			}
		}
		return n > t.Count
	}
	return t.level < -float64(500*time.Millisecond+2*time.Millisecond)/float64(t.Spacing())-1e-6
}

// landed records that a task with a token has come to its hold.
func (t *simTokens) landed() {
	if len(t.way) > 0 {
		t.way = t.way[1:]
	}
}

// spared records that a task with a token was not held.
func (t *simTokens) spared() {
	t.landed()
	t.spare = append(t.spare, time.Now())
}

// drain forgets what is there: nodes that had taken it may be gone with it.
func (s *sim) drain() {
	if time.Now().Equal(s.start) { // nobody has taken any yet
		return
	}
	for _, t := range s.limits.keys {
		t.sure = min(t.sure, 0)
	}
	if s.limits.topic != nil {
		s.limits.topic.sure = min(s.limits.topic.sure, 0)
	}
}

// isDoomed reports whether a hold without a token is one of a task that becomes a dead letter.
func (s *sim) isDoomed(class simClass, before store.Millis) bool {
	l := &s.plan.limits
	return l.DeadLetter && before == 0 && (l.Rate.Limited() || l.KeyRate.Limited() && class.rate != "")
}

// dooms writes down whether a task is held to become a dead letter: of all that one call holds, before holds judges any.
func (s *sim) dooms(topic, id string, h *store.Hold) {
	if !s.plan.policies || topic != simTopic || s.limits.lifted || s.limits.holds[h.Token] {
		return
	}
	class := s.classOf(id)
	delete(s.limits.doomed, id)
	if s.isDoomed(class, h.Before) {
		s.limits.doomed[id] = s.decided(class.rate)
	}
}

// decided is when it was decided that a task of a rate key is over a rate, of the first that is not held yet.
func (s *sim) decided(key string) time.Time {
	if !s.plan.limits.KeyRate.Limited() {
		key = ""
	}
	now := time.Now()
	for over := s.limits.over[key]; len(over) > 0; over = s.limits.over[key] {
		s.limits.over[key] = over[1:]
		if now.Sub(over[0]) < time.Second { // or it was not held
			return over[0]
		}
	}
	return now
}

// isHeldDoomed reports whether a task was held last to become a dead letter.
func (s *sim) isHeldDoomed(id string) bool {
	_, doomed := s.limits.doomed[id]
	return doomed
}

// takes writes down what a call came to.
func (s *sim) takes(q *store.Take, got *store.TakeReply) {
	if !s.plan.policies || q.Topic != simTopic || got == nil {
		return
	}
	for i := range q.Back {
		for _, t := range s.tokensUnder(q.Back[i].RateKey) {
			if t.spared(); len(t.owed) > 0 {
				t.owed = t.owed[1:]
			}
		}
	}
	for i := range got.Wants {
		switch w := &got.Wants[i]; w.Status {
		case store.OverRate:
			key := q.Wants[i].RateKey
			s.limits.over[key] = append(s.limits.over[key], time.Now())
		case store.Granted:
			for _, t := range s.tokensUnder(q.Wants[i].RateKey) {
				t.way = append(t.way, w.Before)
				t.lasts = max(t.lasts, w.Before.Sub(got.Now))
			}
		}
	}
}

// tokensUnder are those that a task of a rate key takes.
func (s *sim) tokensUnder(key string) []*simTokens {
	all := []*simTokens{s.limits.topic}
	if key != "" {
		all = append(all, s.tokensOf(key))
	}
	return all
}

// holds writes down that a task is held, and judges whether it may be.
func (s *sim) holds(topic, id string, h *store.Hold) {
	if !s.plan.policies || topic != simTopic || s.limits.lifted || s.limits.holds[h.Token] {
		return // or the call is repeated, as its answer was lost
	}
	s.limits.holds[h.Token] = true
	class, now := s.classOf(id), time.Now()
	if s.isHeldDoomed(id) {
		return
	}
	s.limits.went[class] = now
	if s.limits.topic.take(now) {
		s.broken("rushed: %s is held, above the rate of its topic", id)
	}
	if class.rate != "" && s.tokensOf(class.rate).take(now) {
		s.broken("rushed: %s is held, above the rate of its key", id)
	}
	all, keys := s.heldBy()
	if most := s.plan.limits.Concurrency; most > 0 && all > most {
		s.broken("crowded: %s is held with %d others of its topic", id, all-1)
	}
	if most := s.plan.limits.KeyConcurrency; most > 0 && class.cap != "" && keys[class.cap] > most {
		s.broken("crowded: %s is held with %d others of its key", id, keys[class.cap]-1)
	}
}

// holdsNot writes down that a task was not held, as it is gone or not due any more: its tokens are known to be lost.
func (s *sim) holdsNot(topic string, h *store.Hold) {
	class := s.classOf(h.ID)
	if !s.plan.policies || topic != simTopic || s.limits.lifted || h.Before <= 1 {
		return
	}
	for _, t := range s.tokensUnder(class.rate) {
		t.spared()
		switch t.pass(time.Now()); {
		case !t.Limited():
		case t.Kind == store.TokenBucket:
			s.excused("a task that is gone when it is to be held took a token")
			t.sure--
		default:
			t.owed = append(t.owed, time.Now())
		}
	}
}

// gets judges that a worker gets a task.
func (s *sim) gets(id string) {
	if s.plan.policies && !s.limits.lifted && s.isHeldDoomed(id) {
		s.broken("rushed: %s is delivered, and was held without a token", id)
	}
}

// doomed writes down that a task becomes a dead letter for its rate, and judges whether it may.
func (s *sim) doomed(id string) {
	s.client("limits").ask(history.Event{Op: history.Delete, Task: id})(history.Event{}, nil)
	s.sometimes("a task over its rate becomes a dead letter")
	s.binds("over limit")
	if !s.plan.policies || s.limits.lifted {
		return
	}
	class, now := s.classOf(id), time.Now()
	decided, held := s.limits.doomed[id]
	if !held {
		decided = now
	}
	if now.After(s.late.quiet) && s.limits.topic.had(now, decided) && (class.rate == "" || s.tokensOf(class.rate).had(now, decided)) {
		s.brokenBy("dead for nothing", "dead for nothing: %s becomes a dead letter for its rate, and there are tokens", id)
	}
}

// heldBy is how many tasks of the first topic are held, and of each key.
func (s *sim) heldBy() (all int, keys map[string]int) {
	keys = make(map[string]int)
	for _, sh := range s.shardsOf(simTopic) {
		held, _, err := s.on(sh).Running(simContext, sh, "", 10_000)
		if err != nil {
			panic(err) // memstore fails only when it is closed
		}
		for _, r := range held {
			if r.Deadline > s.now(sh) && !s.isHeldDoomed(r.ID) {
				all++
				keys[s.classOf(r.ID).cap]++
			}
		}
	}
	return all, keys
}

// lookLimits looks whether tasks of some keys have all that they need, and none of them goes.
func (s *sim) lookLimits(was map[string]time.Time) {
	if !s.plan.policies || s.limits.lifted || !s.room(simTopic) {
		return
	}
	now, l := time.Now(), &s.plan.limits
	all, keys := s.heldBy()
	if l.Concurrency > 0 && (all >= l.Concurrency || s.late.moved.After(now) && s.inUse(store.LimitKey{Topic: simTopic}) >= l.Concurrency) {
		s.excused("the cap of the topic is reached")
		return
	}
	if s.plan.shared > 0 && s.inUse(store.CapKey(simTopic, store.NamespaceCap)) > 0 {
		s.excused("the quota of the namespace is in use")
		return
	}
	if !s.limits.topic.has(now) {
		s.excused("the rate of the topic has no token")
		return
	}
	waits := make(map[simClass]string)
	for _, sh := range s.shardsOf(simTopic) {
		if s.ownerOf(sh) == nil {
			continue
		}
		for _, e := range s.overdue(sh) {
			class := s.classOf(e.ID)
			switch {
			case waits[class] != "" || !s.isHead(sh, &e):
			case l.KeyConcurrency > 0 && class.cap != "" && (keys[class.cap] >= l.KeyConcurrency || s.late.moved.After(now) && s.inUse(store.LimitKey{Topic: simTopic, Key: class.cap}) > 0):
				s.excused("the cap of a key is reached")
			case class.rate != "" && !s.tokensOf(class.rate).has(now):
				s.excused("the rate of a key has no token")
			default:
				waits[class] = e.ID
			}
		}
	}
	byKeys := func(a, b simClass) int { return cmp.Or(cmp.Compare(a.rate, b.rate), cmp.Compare(a.cap, b.cap)) }
	for _, class := range slices.SortedFunc(maps.Keys(waits), byKeys) {
		s.slow(was, waits[class])
		what := fmt.Sprintf("starved: tasks of the keys %q and %q have all that they need, and none goes", class.rate, class.cap)
		since := now
		if before, ok := was[what]; ok && !s.limits.went[class].After(before) {
			since = before
		}
		s.late.since[what] = since
		if lasted := now.Sub(since); lasted > *simSlack+s.unheard() {
			s.brokenBy("starved", "for %v: %s, for one %s", lasted.Round(time.Millisecond), what, waits[class])
		}
	}
}

// slow looks whether a task has all that it needs at every look, and does not go. Others of its keys may go before it.
func (s *sim) slow(was map[string]time.Time, id string) {
	what, since := "slow: "+id, time.Now()
	if before, ok := was[what]; ok {
		since = before
	}
	s.late.since[what] = since
	most := *simSlack + s.unheard()
	for _, r := range []store.Rate{s.plan.limits.Rate, s.plan.limits.KeyRate} {
		if r.Limited() && r.Spacing() < time.Second {
			most += time.Duration(s.late.queue) * r.Spacing()
		}
	}
	if lasted := time.Since(since); lasted > most {
		s.brokenBy("starved", "for %v: %s has all that it needs whenever one looks, and does not go", lasted.Round(time.Millisecond), id)
	}
}

// unheard is how long a node may take to hear of a task: should a notice have got lost, it looks at the shard's seq
// twice before it reads, and seldom when nobody uses the topic.
func (s *sim) unheard() time.Duration {
	if s.plan.loseNotice == 0 {
		return 0
	}
	return time.Duration(2*s.plan.discoverTurns+1) * s.plan.seqEvery
}

// lift has users ask nodes until no limit is left.
func (s *sim) lift() {
	s.limits.lifted = true
	t, err := s.mem.GetTopic(simContext, simTopic)
	if err != nil || t.Limits == (store.TopicLimits{}) {
		return
	}
	s.late.pause(s, simTopic)
	n := s.nodes[s.rng.IntN(len(s.nodes))]
	if !n.dead.Load() && n.up {
		s.log("%s is asked to lift the limits", n.key)
		none, free, no := store.Rate{}, 0, false
		s.spawn(n, func() error {
			ctx, cancel := n.timeout()
			defer cancel()
			_, err := n.use.Topics.Configure(ctx, simTopic, service.TopicChange{Rate: &none, KeyRate: &none, Concurrency: &free, KeyConcurrency: &free, OverLimitDead: &no})
			return err
		}, func(error) { s.late.pause(s, simTopic) })
	}
	s.after(s.plan.callTimeout+time.Second, s.lift)
}
