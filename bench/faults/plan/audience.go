package plan

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ddq-io/ddq/bench/ledger"
)

// The audience of a round, and the topic of the runs that go through it.
const (
	Audience       = "faults"
	AudienceShards = 4
	AudienceKind   = "digest"
	Spread         = "faults-spread"
)

// A run goes through the audience every RunEvery, from the second behind the start of the plan on,
// and takes RunWindow: some are open at a time.
const (
	RunEvery  = 2 * time.Second
	RunWindow = 2500 * time.Millisecond
	RunGrain  = 100 * time.Millisecond
)

// zones are those in which recipients are, and Away the one to which some of them move.
func zones() []string { return []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"} }

// Away is a time zone.
const Away = "Pacific/Auckland"

// AudienceSize is how many recipients there usually are, each of whom has a task of every run: 250 a
// second. Four rounds share two processors. Of 5,000, a round of six seconds takes twice as much of them, and
// four of those at a time have no run of some audiences: the recipients are there when it is over.
const AudienceSize = 500

// Recipient is one of the audience of the plan, to whom at most one thing happens.
type Recipient struct {
	ID   string
	Zone string
	Op   ledger.Op     // Join: is none before; empty: nothing happens
	At   time.Duration // when
}

// Recipients decides everything about the audience of a round.
func Recipients(c *Config) []Recipient {
	r := rand.New(rand.NewPCG(c.Seed, Draw(c.Seed, c.Name, "audience")))
	all := make([]Recipient, c.Recipients)
	for i := range all {
		p := &all[i]
		p.ID, p.Zone = fmt.Sprint("recipient-", i), zones()[r.IntN(len(zones()))]
		if n := r.IntN(20); n < 4 {
			p.Op = []ledger.Op{ledger.Join, ledger.OptOut, ledger.MoveOn, ledger.DropOut}[n]
			p.At = time.Duration(r.Int64N(int64(c.For)))
		}
	}
	return all
}

// IsSpread is how the runs go through the audience.
func IsSpread() *ledger.Spread {
	return &ledger.Spread{Shards: AudienceShards, WindowMS: RunWindow.Milliseconds(), GrainMS: RunGrain.Milliseconds()}
}
