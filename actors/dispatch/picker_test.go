package dispatch

import (
	"fmt"
	"testing"

	"github.com/ddq-io/ddq/store"
)

// pickedBy picks n tasks, has every third refused, and counts the others by fairness key.
func pickedBy(g *limiter, n int) map[string]int {
	got := make(map[string]int)
	for i := 0; n > 0; i++ {
		t := g.pick(1)[0]
		if i%3 == 2 {
			g.giveBack(t)
			continue
		}
		n--
		got[t.Traits.FairnessKey]++
		g.gone(&t)
	}
	return got
}

func limiterOf(ageing int, tasks ...*store.Traits) *limiter {
	g := newLimiter("t", ageing)
	g.configure(ageing, store.TopicLimits{Concurrency: 1000})
	for i, traits := range tasks {
		g.add(readyTask{Entry: store.Entry{ID: fmt.Sprint(i), Due: store.Millis(i), Traits: traits}})
	}
	return g
}

func TestLanesHaveTurnsByWeight(t *testing.T) {
	var all []*store.Traits
	for range 100 {
		all = append(all, &store.Traits{FairnessKey: "light", FairnessWeight: 1, RateKey: "r"})
	}
	for range 100 {
		all = append(all, &store.Traits{FairnessKey: "heavy", FairnessWeight: 3, RateKey: "r"})
	}
	got := pickedBy(limiterOf(1000, all...), 80)
	if got["heavy"] < 58 || got["heavy"] > 62 {
		t.Errorf("of 80 tasks of weights 3 and 1 went: %v", got)
	}
}

func TestPrioritiesComeFirstButForAgeing(t *testing.T) {
	var all []*store.Traits
	for range 100 {
		all = append(all, &store.Traits{FairnessKey: "low"})
	}
	for range 100 {
		all = append(all, &store.Traits{FairnessKey: "high", Priority: 5})
	}
	if got := pickedBy(limiterOf(1000, all...), 60); got["high"] != 60 {
		t.Errorf("of 60 tasks went: %v", got)
	}
	if got := pickedBy(limiterOf(10, all...), 60); got["low"] < 4 || got["low"] > 9 {
		t.Errorf("of 60 tasks, one in ten the oldest, went: %v", got)
	}
}
