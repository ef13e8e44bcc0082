package actors_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ddq-io/ddq/actors/knobs"
	"github.com/ddq-io/ddq/actors/subscription"
	history "github.com/ddq-io/ddq/bench/ledger"
	"github.com/ddq-io/ddq/store"
	"github.com/ddq-io/ddq/store/place"
)

// Runs without any trouble, in which what becomes of a task follows from its id, are compared with twins that have
// the same tasks and other nodes, shards, batches or limits that cannot bind: the same tasks are delivered as often, the
// same are dead letters, and none is late.

// simTwin is what a run without trouble came to.
type simTwin struct {
	deliveries map[string]int
	latest     time.Duration // how late a first delivery was, at most
	dead       map[string]bool
}

// twinLate is how late a task may be: frames and calls take up to 300 ms each, one in fifty.
const twinLate = 2 * time.Second

// quiet leaves a plan without trouble, and without what draws from the source of the run.
func (p *simPlan) quiet() {
	keep := simPlan{
		nodes: 1, shards: 1, workers: p.workers, lease: p.lease, visibility: p.visibility, seqEvery: p.seqEvery, loadEvery: p.loadEvery,
		horizons: p.horizons, watchdog: p.watchdog, discoverTurns: p.discoverTurns, housekeepEvery: p.housekeepEvery, gossipLag: p.gossipLag,
		callTimeout: p.callTimeout, active: 2 * time.Minute, calm: p.calm, pace: p.pace, burst: p.burst, farthest: time.Minute, credit: 100, holdAhead: p.holdAhead,
	}
	*p = keep
}

// twinTasks has producers enqueue what follows from the seed only.
func (s *sim) twinTasks() {
	rng := rand.New(rand.NewPCG(s.seed, 90))
	for i := range 200 {
		t := simTask{id: fmt.Sprintf("q%d", i), retries: rng.IntN(3)}
		t.traits = &store.Traits{
			Priority: rng.IntN(3), FairnessKey: string(rune('a' + rng.IntN(3))), RateKey: string(rune('k' + rng.IntN(3))), ConcurrencyKey: string(rune('K' + rng.IntN(3))),
		}
		t.when.Delay = simBetween(rng, time.Second, 30*time.Second)
		s.after(simBetween(rng, 40*time.Second, s.plan.active), func() { s.enqueue(t, 0) })
	}
}

// twinReceive is what a worker does with a task: most are done, some fail once, some for good.
func (w *simWorker) twinReceive(d subscription.Delivery) {
	twin := w.s.twin
	if twin.deliveries[d.Task.ID]++; twin.deliveries[d.Task.ID] == 1 {
		twin.latest = max(twin.latest, time.Since(d.Task.Due.Time()))
	}
	op := history.Ack
	if fate := place.HashID(d.Task.ID) % 10; fate == 0 || fate < 3 && d.Task.Attempt == 1 {
		op = history.Nack
	}
	w.s.after(10*time.Millisecond, func() { w.settle(d, op) })
}

func twinOf(t *testing.T, seed uint64, alter func(*simPlan)) (twin *simTwin, r *simResult) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSim(seed, simPlan{alter: alter}, nil)
		s.twin = &simTwin{deliveries: make(map[string]int), dead: make(map[string]bool)}
		r, twin = s.whole(), s.twin
	})
	return twin, r
}

// differs says in what another twin differs from this one, which has every task.
func (plain *simTwin) differs(other *simTwin) (how []string) {
	for id, n := range plain.deliveries {
		if other.deliveries[id] != n || other.dead[id] != plain.dead[id] {
			how = append(how, fmt.Sprintf("%s was delivered %d times, dead %t; want %d, %t", id, other.deliveries[id], other.dead[id], n, plain.dead[id]))
		}
	}
	if other.latest > twinLate {
		how = append(how, fmt.Sprintf("a task is %v late", other.latest))
	}
	return how
}

func TestSimulationTwins(t *testing.T) {
	skipLong(t)
	most := 1000
	free := store.Rate{Kind: store.TokenBucket, Count: most, Period: time.Second, Burst: most}
	variants := map[string]func(*simPlan){
		"three nodes":   func(p *simPlan) { p.nodes = 3 },
		"four shards":   func(p *simPlan) { p.shards = 4 },
		"small batches": func(p *simPlan) { p.knobs = knobs.Knobs{HoldBatch: 1, SettleBatch: 1, LoadPage: 2, SweepPage: 1} },
		"limits that cannot bind": func(p *simPlan) {
			p.limits = store.TopicLimits{Rate: free, KeyRate: free, Concurrency: most, KeyConcurrency: most}
		},
		"limits of three nodes that cannot bind": func(p *simPlan) {
			p.nodes, p.limits = 3, store.TopicLimits{Rate: free, KeyRate: free, Concurrency: most, KeyConcurrency: most}
		},
		"a short memory": func(p *simPlan) { p.budget = 3 },
	}
	for seed := *simFirst; seed < *simFirst+uint64(*simTwins); seed++ {
		plain, r := twinOf(t, seed, func(p *simPlan) { p.quiet() })
		report(t, r)
		if len(plain.deliveries) < 200 || len(plain.dead) == 0 || plain.latest > twinLate {
			t.Fatalf("seed %d: %d tasks were delivered, %d are dead, and one was %v late", seed, len(plain.deliveries), len(plain.dead), plain.latest)
		}
		for name, alter := range variants {
			other, r := twinOf(t, seed, func(p *simPlan) {
				p.quiet()
				alter(p)
			})
			report(t, r)
			for _, how := range plain.differs(other) {
				t.Errorf("seed %d, %s: %s", seed, name, how)
			}
		}
	}
}

// TestSimulationTwinsNotice proves that twins differ when the store of one breaks its promises.
func TestSimulationTwinsNotice(t *testing.T) {
	skipLong(t)
	rate := store.Rate{Kind: store.TokenBucket, Count: 1000, Period: time.Second, Burst: 1000}
	plain, r := twinOf(t, 1, func(p *simPlan) { p.quiet() })
	report(t, r)
	for name, lie := range map[string]func(*simPlan){
		"tasks that are forgotten": func(p *simPlan) { p.lies = simLies{adds: true} },
		"holds that do not last":   func(p *simPlan) { p.lies = simLies{doubled: true} },
		"tokens for nobody":        func(p *simPlan) { p.lies, p.limits.Rate = simLies{thirst: true}, rate },
		"a rate that binds": func(p *simPlan) {
			p.limits.Rate = store.Rate{Kind: store.TokenBucket, Count: 1, Period: 5 * time.Second, Burst: 1}
		},
	} {
		other, _ := twinOf(t, 1, func(p *simPlan) {
			p.quiet()
			lie(p)
		})
		if len(plain.differs(other)) == 0 {
			t.Errorf("%s: no difference", name)
		}
	}
}
