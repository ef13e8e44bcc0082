package actors_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors"
	"github.com/ddq-io/ddq/actors/clock"
	"github.com/ddq-io/ddq/actors/knobs"
	"github.com/ddq-io/ddq/actors/shard"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/bench/ledger/checker"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// simNodes is how many nodes a run has at most.
const simNodes = 4

// simPlan is what a run is like.
type simPlan struct {
	nodes, shards, workers int

	lease          time.Duration
	visibility     time.Duration
	seqEvery       time.Duration
	loadEvery      time.Duration
	horizons       []time.Duration // of the nodes
	watchdog       time.Duration
	discoverTurns  int
	housekeepEvery time.Duration
	gossipLag      time.Duration
	callTimeout    time.Duration

	active   time.Duration // producers and faults stop after it
	calm     time.Duration // and the fleet has that long to finish
	pace     time.Duration // between bursts
	burst    int
	farthest time.Duration
	credit   int
	herd     int           // tasks that are due at one moment, now and then; 0: none
	stays    time.Duration // how long a worker stays on average; 0: until its node goes
	polls    time.Duration // between long polls; 0: none
	limits   store.TopicLimits
	edited   bool // schedules change in more than overlap and payload
	policies bool // limits are as drawPolicies has them
	bound    bool // a rate and the cap both hold tasks back
	keys     int  // of tasks, then
	skewed   bool // one of them has most tasks
	shared   int  // tasks of all topics that may be held at a time, as the namespace has it; 0: any number

	loseNotice, loseAnswer float64
	faults                 int
	drops                  int           // of the topic, which the next enqueue makes again
	budget                 int           // tasks that a shard keeps in memory; 0: all
	rewind                 time.Duration // the most that a failover undoes
	idle                   time.Duration // after which topics close; 0: the default
	ahead                  time.Duration // of the clock of the store's second primary; 0: it has one clock
	schedules, workflows   int
	audience               int           // who may be recipients of it; 0: there is none
	reshards               int           // of their topic
	away                   int           // shards of another topic, where workflows have steps and children; 0: there is none
	holdAhead              time.Duration // that tasks are held before they are due; 0: they are not

	chained      int  // shards of a topic that acks enqueue into; 0: none does
	chainBacklog int  // tasks that it takes; 0: any number
	chainMost    int  // that one ack enqueues into it
	chainKeyed   bool // some of those have idempotency keys
	chainShared  int  // so many, which others have, too; 0: each has one of its own
	fulls        int  // times that a shard is full
	shuts        int  // times that one is away

	phases   []simPhase    // none: the run is the same all the time
	expiring bool          // tasks may expire
	requeues time.Duration // between requeues of dead letters; 0: none

	knobs  knobs.Knobs
	former time.Duration // that nodes are in the fleet that know no queues

	lies    simLies
	alter   func(*simPlan) // of a twin
	all     bool           // rules that are known to be broken count, too
	jostled bool           // goroutines are held up at random, which must change nothing
}

// planFor draws what a run is like from its seed.
func (s *sim) planFor() simPlan {
	p := simPlan{
		nodes: 1 + s.rng.IntN(simNodes), shards: 1 + s.rng.IntN(4), workers: 1 + s.rng.IntN(2),
		lease: s.between(8*time.Second, 20*time.Second), visibility: s.between(5*time.Second, 40*time.Second),
		seqEvery: s.between(3*time.Second, 5*time.Second), discoverTurns: 6,
		loadEvery: 15 * time.Second, watchdog: 40 * time.Second,
		housekeepEvery: 20 * time.Second, gossipLag: s.between(50*time.Millisecond, 10*time.Second),
		callTimeout: s.between(2*time.Second, 8*time.Second),
		active:      5 * time.Minute, calm: 10 * time.Minute,
		pace: s.between(2*time.Second, 15*time.Second), burst: 1 + s.rng.IntN(5), farthest: 3 * time.Minute,
		credit: 1 + s.rng.IntN(8), faults: s.rng.IntN(8),
	}
	if s.chance(0.5) {
		p.loseNotice = s.rng.Float64() / 2
	}
	if s.chance(0.25) {
		p.rewind = s.between(time.Millisecond, 2*time.Second)
	}
	if s.chance(0.3) {
		p.loseAnswer = 0.1
	}
	if p.rewind == 0 && s.chance(0.5) { // what waits for the watchdog is late
		p.watchdog = 4 * time.Minute
	}
	if s.chance(0.3) {
		p.budget = 1 + s.rng.IntN(6)
	}
	if s.chance(0.3) {
		p.stays = s.between(time.Second, 30*time.Second)
	}
	if s.chance(0.3) {
		p.polls = s.between(200*time.Millisecond, 5*time.Second)
	}
	if s.chance(0.3) {
		p.herd = 5 + s.rng.IntN(20)
	}
	if s.chance(0.2) && p.rewind == 0 {
		p.drops = 1 + s.rng.IntN(3)
	}
	if s.chance(0.3) {
		p.limits = s.drawLimits()
	}
	if p.rewind > 0 {
		p.watchdog = s.drawWatchdog()
	}
	p.idle = s.drawIdle()
	p.ahead = s.drawClocks()
	p.horizons = s.drawHorizons(p.loadEvery)
	p.holdAhead = s.drawHoldAhead()
	p.schedules = s.drawSchedules(&p)
	p.workflows = s.drawWorkflows(&p)
	p.away = s.drawAway(&p)
	p.audience = s.drawAudience(&p)
	p.reshards = s.drawReshards(&p)
	p.chained = s.drawChained(&p)
	p.fulls = s.drawFulls(&p)
	p.expiring = s.drawExpiring(&p)
	p.shuts = s.drawShuts(&p)
	p.edited = s.drawEdited(&p)
	s.drawPolicies(&p)
	p.shared = s.drawShared(&p)
	p.phases = s.drawPhases(&p)
	p.requeues = s.drawRequeues(&p)
	p.knobs = s.drawKnobs()
	p.former = s.drawFormer()
	return p
}

// drawHorizons draws how far ahead each node looks: at times they differ.
func (s *sim) drawHorizons(loadEvery time.Duration) (all []time.Duration) {
	differ := s.chance(0.3)
	for range simNodes {
		horizon := 55 * time.Second
		if differ {
			horizon = s.between(loadEvery+5*time.Second, shard.MaxHorizon)
		}
		all = append(all, horizon)
	}
	return all
}

// simHas reports whether the run of a seed has something, as one who looks for the seeds of a kind of bug wants it.
func simHas(seed uint64, what string) bool {
	if what == "" {
		return true
	}
	s := &sim{seed: seed, rng: simRandom(seed)}
	p := s.planFor()
	has, ok := map[string]bool{"limits": p.policies, "schedules": p.schedules > 0, "workflows": p.workflows > 0, "acks": p.chained > 0}[what]
	return has || !ok
}

// drawn is what the seed said of the run.
func (p simPlan) drawn() string {
	p.jostled, p.all, p.alter = false, false, nil
	return fmt.Sprintf("%+v", p)
}

// drawFormer draws how long nodes of before are in the fleet, from a source of its own like drawIdle: messages go into
// the out-box until then.
func (s *sim) drawFormer() time.Duration {
	rng := rand.New(rand.NewPCG(s.seed, 60))
	if rng.IntN(4) > 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(6 * time.Minute)))
}

// drawIdle draws after how long topics close. It has a source of its own: the other draws of
// a seed do not depend on it.
func (s *sim) drawIdle() time.Duration {
	rng := rand.New(rand.NewPCG(s.seed, 2))
	if rng.Float64() < 0.7 {
		return 0
	}
	return time.Second + time.Duration(rng.Int64N(int64(30*time.Second)))
}

// drawWatchdog draws how often it looks in a run with failovers, from a source of its own like
// drawIdle. What was undone is not to wait for it.
func (s *sim) drawWatchdog() time.Duration {
	rng := rand.New(rand.NewPCG(s.seed, 13))
	return []time.Duration{40 * time.Second, 4 * time.Minute}[rng.IntN(2)]
}

// drawClocks draws by how much two clocks of the store differ, if they do: less than anyone is
// told of, or so much that it counts as a jump where the two are mixed up. It has a source of its own.
func (s *sim) drawClocks() time.Duration {
	rng := rand.New(rand.NewPCG(s.seed, 3))
	if rng.Float64() < 0.7 {
		return 0
	}
	most := actors.ClockSpread
	if rng.Float64() < 0.5 {
		most = 10 * clock.ClockJump
	}
	ahead := time.Millisecond + time.Duration(rng.Int64N(int64(most)))
	if rng.Float64() < 0.5 {
		return -ahead
	}
	return ahead
}

// drawHoldAhead draws how long before their due times tasks are held, from a source of its own
// like drawIdle.
func (s *sim) drawHoldAhead() time.Duration {
	rng := rand.New(rand.NewPCG(s.seed, 7))
	return []time.Duration{0, 10 * time.Millisecond, 10 * time.Millisecond, store.MaxHoldAhead}[rng.IntN(4)]
}

// drawShared draws how many tasks of the namespace may be held at a time, if that is bounded, from a source of
// its own like drawIdle. Few are, and often, where there are two topics to share them.
func (s *sim) drawShared(p *simPlan) int {
	rng := rand.New(rand.NewPCG(s.seed, 40))
	chance, most := 0.3, 6
	if p.away > 0 {
		chance, most = 0.7, 2
	}
	if p.bound {
		return 0
	}
	if rng.Float64() >= chance {
		return 0
	}
	return 1 + rng.IntN(most)
}

// drawLimits draws rates and caps, of topics and of keys.
func (s *sim) drawLimits() (l store.TopicLimits) {
	if s.chance(0.6) {
		l.Rate = s.drawRate()
	}
	if s.chance(0.3) {
		l.KeyRate = s.drawRate()
	}
	if s.chance(0.6) {
		l.Concurrency = 1 + s.rng.IntN(6)
	}
	if s.chance(0.3) {
		l.KeyConcurrency = 1 + s.rng.IntN(3)
	}
	return l
}

func (s *sim) drawRate() store.Rate {
	r := store.Rate{Kind: store.TokenBucket, Count: 3 + s.rng.IntN(20), Period: s.between(time.Second, 2*time.Second).Truncate(time.Millisecond), Burst: 1 + s.rng.IntN(10)}
	if s.chance(0.3) {
		r.Kind, r.Burst = store.SlidingWindow, 0
	}
	return r
}

// config is how a node is set up.
func (p *simPlan) config(i int) actors.Config {
	name := simName(i)
	return actors.Config{
		Node: name, Addr: name, LeaseTTL: p.lease, Horizon: p.horizons[i], LoadEvery: p.loadEvery,
		HoldAhead: p.holdAhead, WatchdogInterval: p.watchdog, IdleAfter: p.idle, ReadyBudget: p.budget, WheelBudget: 2 * p.budget, Knobs: p.knobs,
		Topic: store.Topic{
			Shards: p.shards, Visibility: p.visibility, Limits: p.limits,
			Backoff: store.Backoff{Kind: store.BackoffExponential, Base: 500 * time.Millisecond, Max: 4 * time.Second, Jitter: 20},
		},
	}
}

// whole is a run from the start to the verdict.
func (s *sim) whole() *simResult {
	given := s.plan
	s.plan = s.planFor()
	s.plan.lies, s.plan.jostled, s.plan.all = given.lies, given.jostled, given.all
	if given.alter != nil {
		given.alter(&s.plan)
	}
	lies := given.lies
	if lies.fences { // somebody else has to be there, and much has to be held
		s.plan.nodes, s.plan.rewind = simNodes, 0
		s.plan.faults, s.plan.pace, s.plan.burst = 30, time.Second, 5
	}
	if lies.early { // what is held ahead waits at the node
		s.plan.holdAhead = 0
	}
	s.log("seed %d: %s", s.seed, s.plan.drawn())
	for _, name := range s.topics() {
		topic := s.plan.topic(name)
		told := describe(&topic, s.plan.policies)
		told.Shared = s.plan.shared
		s.client("rig").write(told)
		if _, err := s.mem.PutTopic(simContext, topic); err != nil {
			panic(err)
		}
	}
	for i := range s.plan.nodes {
		s.nodes = append(s.nodes, s.startNode(i, 1))
		s.gossip()
	}
	s.makeDays()
	s.schedule()
	s.edited()
	s.gather()
	s.submitWorkflows()
	if s.twin != nil {
		s.twinTasks()
	} else {
		s.produce()
	}
	s.openLimits()
	s.poll()
	s.pauses()
	s.requeues()
	s.watchLate()
	s.trouble()
	if s.plan.former > 0 {
		s.after(s.plan.former, s.gossip)
	}
	end := s.start.Add(s.plan.active)
	s.run(func() bool { return time.Now().After(end) })
	s.heal()
	end = end.Add(s.plan.calm)
	looked := time.Now()
	s.run(func() bool {
		if time.Since(looked) < time.Second {
			return false
		}
		looked = time.Now()
		return s.empty() || looked.After(end) && !s.goesOn(looked) || looked.After(end.Add(time.Hour))
	})
	s.audit()
	s.auditSchedules()
	s.auditFlows()
	s.auditAudience()
	s.auditMessages()
	r := &simResult{Seed: s.seed, Steps: s.steps, Lasted: time.Since(s.start), Breaches: s.breach, Met: s.met}
	for _, n := range s.nodes {
		s.kill(n, "the end")
	}
	synctest.Wait()
	s.engine.Shutdown()
	time.Sleep(10 * time.Second) // calls of nodes that are gone end by themselves
	synctest.Wait()
	s.admit()
	for _, idle := range s.idle {
		close(idle)
	}
	time.Sleep(10 * time.Second) // as does the actor library's dead-letter throttle
	var files [][]history.Event
	for _, c := range s.books {
		files = append(files, c.events)
	}
	r.Verdict = checker.Check(checker.New(files), checker.Rules{Allowances: s.plan.allowances(), TokensLost: []string{"rewind"}})
	return r
}

// topics are those of the run.
func (s *sim) topics() []string {
	topics := []string{simTopic}
	if s.plan.away > 0 {
		topics = append(topics, simAway)
	}
	if s.plan.chained > 0 {
		topics = append(topics, simChained)
	}
	return topics
}

// topic is one as it is set up.
func (p *simPlan) topic(name string) store.Topic {
	t := p.config(0).WithDefaults().Topic
	t.Name, t.Life = name, 1 // without a life shards take tasks also when it is deleted, see store.ShardLife
	if name == simAway {
		t.Life, t.Shards, t.Limits = 2, p.away, store.TopicLimits{}
	}
	if name == simChained {
		t.Life, t.Shards, t.Limits, t.MaxBacklog = 3, p.chained, store.TopicLimits{}, p.chainBacklog
	}
	return t
}

// describe is a topic as the ledger is told of it.
func describe(t *store.Topic, policies bool) history.Event {
	l := t.Limits
	if policies { // of which the simulation has books of its own
		l = store.TopicLimits{}
	}
	return history.Event{
		Kind: history.Topic, Topic: t.Name, HoldMS: t.Visibility.Milliseconds(),
		Cap: l.Concurrency, KeyCap: l.KeyConcurrency, Rate: simRate(l.Rate), KeyRate: simRate(l.KeyRate),
	}
}

func simRate(r store.Rate) *history.Rate {
	if !r.Limited() {
		return nil
	}
	return &history.Rate{Count: r.Count, PeriodMS: r.Period.Milliseconds(), Burst: r.Burst, Window: r.Kind == store.SlidingWindow}
}

// goesOn reports whether tasks are still delivered. Few workers who have credit for one task,
// and whose acks at other nodes their owners are not told of, may wait for a hold each time; and they may all have left.
// A task that its owner was not told of waits for the next look at the window, and what is full waits with it.
func (s *sim) goesOn(now time.Time) bool {
	patience := 2*s.plan.visibility + 2*s.plan.idle + time.Second
	if s.plan.loseNotice > 0 {
		patience += slices.Max(s.plan.horizons)
	}
	return now.Sub(s.handed) <= patience
}

// empty reports whether nothing is left to do.
func (s *sim) empty() bool {
	stats, err := s.mem.Stats(simContext, s.shards())
	if err != nil {
		return false
	}
	left := int64(0)
	for _, st := range stats {
		left += st.Pending + st.Running
	}
	return left == 0 && s.left() == 0 && s.schedulesOver() && s.flowsOver() && s.audienceOver()
}

// shards are those of all topics.
func (s *sim) shards() (all []store.Shard) {
	for _, name := range s.topics() {
		all = append(all, s.shardsOf(name)...)
	}
	return all
}

func (s *sim) shardsOf(topic string) []store.Shard {
	t, err := s.mem.GetTopic(simContext, topic)
	if err != nil {
		return nil
	}
	return place.Shards(&t)
}

var simReasons = map[store.Reason]string{
	store.ReasonMaxRetries: "max_retries", store.ReasonPermanent: "permanent", store.ReasonExpired: "expired",
	store.ReasonCorrupt: "corrupt", store.ReasonHoldExpired: "hold_expired",
	store.ReasonCancelled: "cancelled",
}

// audit writes down what is in the store.
func (s *sim) audit() {
	c := s.client("rig")
	for _, sh := range s.shards() {
		for _, kind := range []store.Kind{store.KindPending, store.KindRunning, store.KindDone, store.KindDead} {
			tasks, _, err := s.on(sh).List(simContext, sh, kind, "", 100_000)
			if err != nil {
				panic(fmt.Sprintf("audit: %v", err)) // memstore fails only when it is closed
			}
			for i := range tasks {
				t := &tasks[i]
				s.leavesDead(sh, t)
				if s.twin != nil && t.State == store.StateDead {
					s.twin.dead[t.ID] = true
				}
				if t.Reason == store.ReasonRateLimited || t.Reason == store.ReasonExpired { // it was told when it died
					continue
				}
				e := history.Event{
					Kind: history.Found, Task: t.ID, Due: int64(t.Due), State: t.State.String(),
					Retries: max(0, t.Attempt-1), MaxRetries: t.MaxRetries, Reason: simReasons[t.Reason],
				}
				if t.Deadline != 0 {
					e.HoldMS = t.Deadline.Time().Sub(s.now(sh).Time()).Milliseconds()
				}
				c.write(e)
			}
		}
	}
	c.write(history.Event{Kind: history.Audited})
}
