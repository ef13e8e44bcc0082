package actors_test

import (
	"flag"
	"slices"
)

// What the simulation does not call a breach is named here, with its reason, and nowhere else. `make sim` prints
// in how many seeds each excuse was needed. The list is to shrink.

var simAll = flag.Bool("sim.all", false, "judge by rules that are known to be broken, too")

// simKnown are rules that are off as the product is known to break them. Whoever mends the defect deletes the entry.
var simKnown = map[string]string{}

// simExcuses are why something may be overdue.
var simExcuses = []string{
	"the cap of the topic is reached",
	"the cap of a key is reached",
	"the quota of the namespace is in use",
	"the rate of the topic has no token",
	"the rate of a key has no token",
	"a task that is gone when it is to be held took a token",
	"a task that was to become a dead letter for its rate waits for the watchdog", // its hold is in no wheel
	"a run of before a reshard was asked to end by a step that was made anew",     // it is asked first: its shard is another one
}

// excused says that a run needed an excuse.
func (s *sim) excused(why string) {
	if !slices.Contains(simExcuses, why) {
		panic("no excuse: " + why)
	}
	s.met[why] = true
}

// brokenBy notes a breach of a rule, unless it is known to be broken. Tests of the rule itself see it all the same.
func (s *sim) brokenBy(rule, format string, args ...any) {
	if _, known := simKnown[rule]; known && !*simAll && !s.plan.all {
		s.met["known: "+rule] = true
		return
	}
	if s.met["told: "+rule] { // the first tells of it, and leaves room for others
		return
	}
	s.met["told: "+rule] = true
	s.broken(format, args...)
}
