package actors_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	simSeeds = flag.Int("sim.seeds", 4, "how many seeds TestSimulation runs")
	simFirst = flag.Uint64("sim.first", 1, "the first of them")
	simOn    = flag.Bool("sim.on", false, "go on after a seed that breaks promises")
	simAgain = flag.Int("sim.again", 1, "how many seeds TestSimulationReplays runs")
	simTwins = flag.Int("sim.twins", 1, "how many seeds TestSimulationTwins runs, with their twins")
	simSeed  = flag.Uint64("sim.seed", 0, "run this seed alone, and trace it")
	simWith  = flag.String("sim.with", "", "leave out seeds whose runs have none of it: limits, schedules, workflows, acks")
	simSlack = flag.Duration("sim.slack", 5*time.Second, "how late a task may come without a cause")
)

// simCampaign is how many seeds have to meet every probe together.
const simCampaign = 2000

// TestSimulation runs seeds, see sim. `make sim` runs many, or one with its trace, and
// `make long` some more with the race detector.
func TestSimulation(t *testing.T) {
	if *simSeed != 0 {
		r := simulate(t, *simSeed, simPlan{}, os.Stdout)
		report(t, r)
		return
	}
	seeds := dose(*simSeeds)
	var next atomic.Uint64
	next.Store(*simFirst - 1)
	last := *simFirst - 1 + uint64(seeds)
	var mu sync.Mutex
	var lasted time.Duration
	seen := simSeen{met: make(map[string]int)}
	steps := 0
	began := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for w := range 2 {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for {
					seed := next.Add(1)
					if seed > last || t.Failed() && !*simOn {
						return
					}
					if !simHas(seed, *simWith) {
						continue
					}
					r := simulate(t, seed, simPlan{}, nil)
					report(t, r)
					seen.add(r)
					mu.Lock()
					lasted += r.Lasted
					steps += r.Steps
					mu.Unlock()
				}
			})
		}
	})
	took := time.Since(began)
	t.Logf("%d seeds in %v: %.0f a minute, %v simulated, %.0f times real time, %.1f us a step",
		seeds, took.Round(time.Millisecond), float64(seeds)/took.Minutes(), lasted.Round(time.Second),
		lasted.Seconds()/took.Seconds(), float64(took.Microseconds())/float64(steps))
	var b strings.Builder
	never := seen.write(&b, "met", simProbes)
	seen.write(&b, "excused", simExcuses)
	seen.writePairs(&b)
	for rule, why := range simKnown {
		fmt.Fprintf(&b, "%7d  broken and known, %s: %s\n", seen.met["known: "+rule], rule, why)
	}
	t.Log(b.String())
	if len(never) > 0 && *simSeeds >= simCampaign {
		t.Errorf("no seed met %q", never)
	}
}

func report(t *testing.T, r *simResult) {
	t.Helper()
	if r.ok() {
		return
	}
	var b strings.Builder
	writeResult(&b, r)
	t.Errorf("seed %d breaks promises; make sim SEED=%d replays it\n%s", r.Seed, r.Seed, b.String())
}

func writeResult(w io.Writer, r *simResult) {
	for _, line := range r.Breaches {
		fmt.Fprintln(w, line)
	}
	_ = r.Verdict.WriteText(w, 3)
}

// TestSimulationReplays runs seeds on one processor and on several, and has goroutines that are
// slower than they could be: a run depends on its seed alone. `make sim` runs many.
func TestSimulationReplays(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for seed := *simFirst; seed < *simFirst+uint64(*simAgain); seed++ {
		var first string
		for i, procs := range []int{1, 4, 2} {
			var b bytes.Buffer
			runtime.GOMAXPROCS(procs)
			simulate(t, seed, simPlan{jostled: i > 0}, &b)
			if i == 0 {
				first = b.String()
			} else if b.String() != first {
				t.Errorf("seed %d ran in two ways:\n%s", seed, parting(first, b.String()))
			}
		}
	}
}

// TestSimulationNotices proves that a store that breaks its promises is caught.
func TestSimulationNotices(t *testing.T) {
	skipLong(t)
	for name, lies := range map[string]simLies{
		"epochs that do not count":     {fences: true},
		"acks that are always right":   {acks: true},
		"tasks that are forgotten":     {adds: true},
		"holds before their time":      {early: true},
		"holds that do not last":       {doubled: true},
		"no order":                     {unordered: true},
		"messages that are forgotten":  {messages: true},
		"tokens that are not counted":  {rates: true},
		"permits that are not counted": {caps: true},
		"tokens for nobody":            {thirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 30; seed++ {
				r := simulate(t, seed, simPlan{lies: lies, all: lies.thirst}, nil)
				if told := strings.Join(r.Breaches, "\n"); !r.ok() && (!lies.fences || told != "") && (!lies.thirst || strings.Contains(told, "and none goes")) {
					t.Logf("seed %d: %s %v", seed, r.Verdict.Summary(), r.Breaches[:min(1, len(r.Breaches))])
					return
				}
			}
			t.Error("not noticed in 29 runs")
		})
	}
}

// parting is where two traces part.
func parting(a, b string) string {
	one, other := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			return strings.Join(one[max(0, i-8):min(len(one), i+3)], "\n") + "\nor\n" + strings.Join(other[i:min(len(other), i+3)], "\n")
		}
	}
	return "one is longer"
}
