package faults

import (
	"time"

	"github.com/ddq-io/ddq/bench/faults/plan"
	"github.com/ddq-io/ddq/bench/faults/stand"
)

// setting is what a round is played with.
type setting struct {
	system      stand.Config
	mix         plan.Mix
	rate        float64
	span        time.Duration // how long tasks are sent
	hold        time.Duration
	producers   int
	oneClient   bool // for all producers
	workers     int
	sdks        []string // a worker more in each of these languages
	sdkDir      string
	outbox      string // ddq-outbox; empty: nobody has an outbox
	oneSided    bool   // workers connect to the first node only, or to the others only
	concurrency int
	work        time.Duration // the most that a handler takes
	herd        int
	maxRetries  int
	shards      int
	schedules   int
	recipients  int           // of an audience
	workflows   int           // of all shapes, and half as many chains of tasks
	crowd       int           // of schedules, in a round that has one
	reshard     bool          // topics get other shards in the middle
	together    int           // tasks of all topics that may be held at a time, by the quota of their namespace; 0: any number
	midnight    int           // more of them, see plan.Config
	midnightAt  time.Duration // from the start of the plan
}
