package actors

import (
	"fmt"
	"testing/synctest"
	"time"

	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
)

// simPlan is what a run is like.
type simPlan struct {
	nodes, shards, workers int

	lease          time.Duration
	visibility     time.Duration
	seqEvery       time.Duration
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

	loseNotice, loseAnswer float64
	faults                 int
	budget                 int           // tasks that a shard keeps in memory; 0: all
	rewind                 time.Duration // the most that a failover undoes

	lies simLies
}

// planFor draws what a run is like from its seed.
func (s *sim) planFor() simPlan {
	p := simPlan{
		nodes: 1 + s.rng.IntN(4), shards: 1 + s.rng.IntN(4), workers: 1 + s.rng.IntN(2),
		lease: s.between(8*time.Second, 20*time.Second), visibility: s.between(5*time.Second, 40*time.Second),
		seqEvery: s.between(3*time.Second, 5*time.Second), discoverTurns: 6,
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
	if s.chance(0.3) {
		p.budget = 1 + s.rng.IntN(6)
	}
	return p
}

// config is how a node is set up.
func (p *simPlan) config(name string) Config {
	return Config{
		Node: name, Addr: name, LeaseTTL: p.lease, Horizon: 55 * time.Second, LoadEvery: 15 * time.Second,
		WatchdogInterval: 40 * time.Second, ReadyBudget: p.budget, WheelBudget: 2 * p.budget,
		Topic: store.Topic{
			Shards: p.shards, Visibility: p.visibility,
			Backoff: store.Backoff{Kind: store.BackoffExponential, Base: 500 * time.Millisecond, Max: 4 * time.Second, Jitter: 20},
		},
	}
}

// whole is a run from the start to the verdict.
func (s *sim) whole() *simResult {
	lies := s.plan.lies
	s.plan = s.planFor()
	s.plan.lies = lies
	if lies.fences { // an owner has to sleep at the wrong moment
		s.plan.faults, s.plan.pace, s.plan.burst = 30, time.Second, 5
	}
	s.log("seed %d: %+v", s.seed, s.plan)
	s.client("rig").write(history.Event{Kind: history.Topic, Topic: simTopic, HoldMS: s.plan.visibility.Milliseconds()})
	topic := s.plan.config("").withDefaults().Topic
	topic.Name = simTopic
	if _, err := s.mem.PutTopic(simContext, topic); err != nil {
		panic(err)
	}
	for i := range s.plan.nodes {
		s.nodes = append(s.nodes, s.startNode(i, 1))
		s.gossip()
	}
	s.produce()
	s.trouble()
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
		return s.empty() || looked.After(end)
	})
	s.audit()
	r := &simResult{Seed: s.seed, Steps: s.steps, Lasted: time.Since(s.start), Breaches: s.breach}
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
	r.Verdict = history.Check(history.New(files), history.Rules{Allowances: s.plan.allowances()})
	return r
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
	return left == 0
}

func (s *sim) shards() []store.Shard {
	t, err := s.mem.GetTopic(simContext, simTopic)
	if err != nil {
		return nil
	}
	return shardsOf(&t)
}

var simReasons = map[store.Reason]string{
	store.ReasonMaxRetries: "max_retries", store.ReasonPermanent: "permanent", store.ReasonExpired: "expired",
	store.ReasonCorrupt: "corrupt", store.ReasonHoldExpired: "hold_expired",
}

// audit writes down what is in the store.
func (s *sim) audit() {
	c := s.client("rig")
	for _, sh := range s.shards() {
		for _, kind := range []store.Kind{store.KindPending, store.KindRunning, store.KindDone, store.KindDead} {
			tasks, _, err := s.mem.List(simContext, sh, kind, "", 100_000)
			if err != nil {
				panic(fmt.Sprintf("audit: %v", err)) // memstore fails only when it is closed
			}
			for i := range tasks {
				t := &tasks[i]
				e := history.Event{
					Kind: history.Found, Task: t.ID, Due: int64(t.Due), State: t.State.String(),
					Retries: max(0, t.Attempt-1), MaxRetries: t.MaxRetries, Reason: simReasons[t.Reason],
				}
				if t.Deadline != 0 {
					e.HoldMS = time.Until(t.Deadline.Time()).Milliseconds()
				}
				c.write(e)
			}
		}
	}
	c.write(history.Event{Kind: history.Audited})
}
