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
	workers     int
	concurrency int
	work        time.Duration // the most that a handler takes
	herd        int
	maxRetries  int
	shards      int
}
