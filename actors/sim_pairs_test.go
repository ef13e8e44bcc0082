package actors_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ddq-io/ddq/actors/schedule"
	"github.com/ddq-io/ddq/store"
)

// Bugs lie where two policies hold something back at one moment. Once a second it is looked at which do, as far as
// the store and the books of the simulation tell; a campaign prints in how many of its seeds each two did.

// simPolicies are the policies of which that is known.
var simPolicies = []string{
	"rate", "key rate", "cap", "key cap", "namespace cap", "over limit", "ordering key", "expiry", "ready budget", "delivery paused",
	"enqueue paused", "max backlog", "full shard", "reshard", "schedule paused", "overlap", "backfill", "workflow paused", "workflow timeout",
}

// simPairMost is how rare a pair is that is printed by its name: one seed in so many.
const simPairMost = 100

// binds says that a policy holds something back at the present look, or did since the last one.
func (s *sim) binds(policy string) {
	if !slices.Contains(simPolicies, policy) {
		panic("no policy: " + policy)
	}
	s.late.binding[policy] = true
}

// lookPairs looks which policies hold something back, and which two of them together.
func (s *sim) lookPairs() {
	for _, name := range s.topics() {
		t, err := s.mem.GetTopic(simContext, name)
		if err != nil {
			continue
		}
		for _, b := range []struct {
			policy string
			binds  bool
		}{
			{"delivery paused", t.DeliveryPaused},
			{"enqueue paused", t.EnqueuePaused},
			{"reshard", t.Former[0].Shards > 0 && s.plan.reshards > 0},
			{"max backlog", t.MaxBacklog > 0 && s.pending(name) >= int64(t.MaxBacklog)},
		} {
			if b.binds {
				s.binds(b.policy)
			}
		}
		s.lookShards(name)
	}
	s.lookLimited()
	for i := range s.plan.schedules {
		s.lookSchedule(simScheduleName(i))
	}
	for _, flow := range s.flows {
		if flow.paused {
			s.binds("workflow paused")
		}
	}
	var met []string
	for _, policy := range simPolicies {
		if s.late.binding[policy] {
			met = append(met, policy)
		}
	}
	for i, a := range met {
		for _, b := range met[i+1:] {
			s.met[simPair(a, b)] = true
		}
	}
	clear(s.late.binding)
}

// lookLimited looks which limits hold back tasks that are due.
func (s *sim) lookLimited() {
	l, now := &s.plan.limits, time.Now()
	if !s.plan.policies || s.limits.lifted {
		return
	}
	all, keys := s.heldBy()
	var due []store.Entry
	for _, sh := range s.shardsOf(simTopic) {
		due = append(due, s.overdue(sh)...)
	}
	if len(due) == 0 {
		return
	}
	if l.Concurrency > 0 && all >= l.Concurrency {
		s.binds("cap")
	}
	if !s.limits.topic.has(now) {
		s.binds("rate")
	}
	if s.plan.shared > 0 && s.inUse(store.CapKey(simTopic, store.NamespaceCap)) >= s.plan.shared {
		s.binds("namespace cap")
	}
	for i := range due {
		class := s.classOf(due[i].ID)
		if class.cap != "" && l.KeyConcurrency > 0 && keys[class.cap] >= l.KeyConcurrency {
			s.binds("key cap")
		}
		if class.rate != "" && !s.tokensOf(class.rate).has(now) {
			s.binds("key rate")
		}
	}
}

func simPair(a, b string) string { return "both: " + a + ", " + b }

func (s *sim) lookShards(topic string) {
	for _, sh := range s.shardsOf(topic) {
		if s.faults.full[sh.For(0)] > 0 {
			s.binds("full shard")
		}
		due := s.overdue(sh)
		if s.plan.budget > 0 && len(due) > s.plan.budget {
			s.binds("ready budget")
		}
		if slices.ContainsFunc(due, func(e store.Entry) bool { return !s.isHead(sh, &e) }) {
			s.binds("ordering key")
		}
	}
}

func (s *sim) lookSchedule(name string) {
	one, _ := s.readSchedule(schedule.CellID(name))
	if one == nil {
		return
	}
	if one.Phase == schedule.Paused {
		s.binds("schedule paused")
	}
	if len(one.Waiting) > 0 {
		s.binds("overlap")
	}
	if len(one.Backfills) > 0 {
		s.binds("backfill")
	}
}

// pending is how many tasks of a topic are.
func (s *sim) pending(topic string) (n int64) {
	stats, err := s.numbers(s.shardsOf(topic), s.mem.Stats)
	if err != nil {
		panic(err) // memstore fails only when it is closed
	}
	for _, st := range stats {
		n += st.Pending
	}
	return n
}

// writePairs prints how many pairs held something back at one moment, and which did in few seeds or none.
func (c *simSeen) writePairs(w io.Writer) {
	all, met, rare := 0, 0, []string(nil)
	for i, a := range simPolicies {
		for _, b := range simPolicies[i+1:] {
			n := c.met[simPair(a, b)]
			if all++; n > 0 {
				met++
			}
			if n*simPairMost < c.seeds {
				rare = append(rare, fmt.Sprintf("%s + %s (%d)", a, b, n))
			}
		}
	}
	fmt.Fprintf(w, "pairs of policies that held something back at one moment: %d of %d; in less than one of %d seeds: %s\n", met, all, simPairMost, strings.Join(rare, "; "))
}
