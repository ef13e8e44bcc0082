package plan

import (
	"fmt"
	"time"
)

// The topics of a round. Most tasks are of the plain one; the others have policies, and
// keep what is done, with the times at which the store says that it was taken.
const (
	Plain  = "faults"
	Capped = "faults-capped" // a cap, and one of each key
	Rated  = "faults-rated"  // a rate, and one of each key
	Kept   = "faults-kept"   // paused at first; its tasks are waited for, and cancelled
)

// Topics are all of them.
func Topics() []string { return []string{Plain, Capped, Rated, Kept} }

// AllTopics are the topics of a round, that of the backlog, those of the schedules and those of the
// workflows.
func AllTopics() []string { return append(Topics(), Laned, Scheduled, Spread, Flowed, Next) }

// Scheduled is the topic of the schedules. It keeps their runs when they are done.
const Scheduled = "faults-scheduled"

// The shares of tasks that are of a topic with policies, per mille, and how many keys
// they have.
const (
	PolicyShare = 80
	PolicyKeys  = 3
	// CappedWork is how long a handler takes for a task under a cap, on average.
	CappedWork = 100 * time.Millisecond
)

// topicOf picks the topic of a task.
func topicOf(seed uint64, id string) string {
	switch n := Draw(seed, id, "topic") % 1000; {
	case n < PolicyShare:
		return Capped
	case n < 2*PolicyShare:
		return Rated
	case n < 3*PolicyShare:
		return Kept
	}
	return Plain
}

// Customer is a key under which tasks have rates and caps.
func Customer(n uint64) string { return fmt.Sprint("customer ", n%PolicyKeys) }

const (
	// Laned is a topic of one shard whose deliveries are paused until everything else is
	// over. Its tasks, which are stored before anything is broken, wait as a backlog: who
	// goes first then is known.
	Laned = "faults-laned"
	// LanedWorkers is how many of its tasks a worker process handles at a time, and
	// LanedInFlight how many it has at most.
	LanedWorkers  = 2
	LanedInFlight = 3
)

// TagAttribute is an attribute of the tasks of one topic, by which half of them are
// watched. It is indexed.
const (
	TagAttribute = "half"
	WatchedHalf  = "watched"
	otherHalf    = "other"
)

// TagOf is that of a task; empty: none.
func TagOf(seed uint64, topic, id string) string {
	switch {
	case topic != Kept:
		return ""
	case Draw(seed, id, "half")%2 == 0:
		return WatchedHalf
	}
	return otherHalf
}

// GroupAttribute is the attribute by which the tasks of a Bulk are found, when it is not by
// how their ids begin. It is indexed.
const GroupAttribute = "group"
