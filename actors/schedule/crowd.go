package schedule

import (
	"time"

	"github.com/ddq-io/ddq/store"
)

const (
	// MaxLead is how far ahead runs are made at most.
	MaxLead = 5 * time.Minute

	rate  = 2000        // schedules of a shard that are stepped in a second, at least
	spare = time.Second // of the lead, that is left when the last of a crowd is made
)

// CrowdLead returns how far ahead runs are to be made so that each is in time, where many
// schedules wake in the next minutes: counts are those that wake before each of the bounds,
// and behind the one before it. It also returns when that will be more; 0: not as far as is
// known.
func CrowdLead(now store.Millis, bounds []store.Millis, counts []int64) (lead time.Duration, more store.Millis) {
	lead = Lead
	sum := int64(0)
	for i, bound := range bounds {
		sum += counts[i]
		takes := time.Duration(sum) * time.Second / rate
		begin := bound.Add(Lead - spare - takes)
		ahead := min(bound.Sub(now)+Lead, MaxLead)
		switch {
		case takes <= Lead-spare: // the usual lead will do
		case begin <= now:
			lead = max(lead, ahead)
		case more == 0 || begin < more:
			more = begin
		}
	}
	return lead, more
}
