package actors_test

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

// What a campaign has to see at some time. A seed that is clean says nothing of a condition that it never met: so
// whoever mends a defect names its condition here, and `make sim` prints how many seeds met each. Nothing of it is
// in a release: the conditions are seen from the store, and from what users ask for.
var simProbes = []string{
	"a definition changes",
	"a definition changes within the lead of a run that is made",
	"an edit from intervals that count from ends to times",
	"an edit of something else within an interval",
	"times were missed, and the last is caught up with",
	"times were missed, and a calendar leaves out the last",
	"a pause while a run is put off by jitter",
	"a backfill goes on",
	"a backfill goes on in a pause",
	"a backfill goes on in a pause, and a time waits",
	"the run of a schedule is requeued",
	"a task expires",
	"a workflow has timed out, and is open",
	"a task over its rate becomes a dead letter",
	"a shard has room while a relay is behind messages that wait for it",
	"a topic goes on while a relay is behind messages that wait for it",
	"two tasks of a page are undeliverable",
	"an owner is gone when a shard has received its messages",
	"a shard is away when messages are brought to it",
}

// simSeen counts the seeds of a campaign.
type simSeen struct {
	mu    sync.Mutex
	seeds int
	met   map[string]int // by probe, or excuse
}

// sometimes says that a run has met a condition.
func (s *sim) sometimes(probe string) {
	if !slices.Contains(simProbes, probe) {
		panic("no probe: " + probe)
	}
	s.met[probe] = true
}

// add counts what a run met.
func (c *simSeen) add(r *simResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seeds++
	for what := range r.Met {
		c.met[what]++
	}
}

// write prints how many seeds met each of some conditions, and returns those that none did.
func (c *simSeen) write(w io.Writer, what string, names []string) (never []string) {
	fmt.Fprintf(w, "%s, of %d seeds:\n", what, c.seeds)
	for _, name := range names {
		fmt.Fprintf(w, "%7d  %s\n", c.met[name], name)
		if c.met[name] == 0 {
			never = append(never, name)
		}
	}
	return never
}
